package http

import (
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestOnlyTheHostsOfAListenerAreAnswered(t *testing.T) {
	for listen, want := range map[string]map[string]bool{
		"127.0.0.1:9090": {
			"127.0.0.1:9090": true, "localhost": true, "LOCALHOST.:9090": true, "[::1]:9090": true, "app.localhost": true, "": true,
			"turnstone.example": true, "turnstone.example:443": true, "evil.example": false, "evil.example:9090": false, "10.0.0.7:9090": false,
			"127.0.0.1.evil.example": false, "localhost.evil.example": false, "turnstone.example.evil.example": false, "2130706433": false,
		},
		"0.0.0.0:9090":     {"10.0.0.7:9090": true, "[fd00::7]:9090": true, "localhost": true, "evil.example": false},
		":9090":            {"10.0.0.7": true, "evil.example:9090": false},
		"10.0.0.7:9090":    {"10.0.0.7:9090": true, "evil.example": false},
		"node-7.pods:9090": {"node-7.pods:9090": true, "10.0.0.7": true, "node-8.pods": false},
	} {
		allowed := newHosts(listen, "turnstone.example")
		for host, pass := range want {
			if err := allowed.check(&stdhttp.Request{Host: host}); (err == nil) != pass {
				t.Errorf("%q at %s: %v", host, listen, err)
			}
		}
	}
}

// A page whose name resolves to our address reaches neither listener, whatever it asks for.
func TestARequestForAnotherHostIsRefusedOnBothListeners(t *testing.T) {
	w := newWorld(t)
	passed := false
	internal := OnlyHosts("127.0.0.1:9090", nil, stdhttp.HandlerFunc(func(stdhttp.ResponseWriter, *stdhttp.Request) { passed = true }))
	for _, path := range []string{"/", "/health", "/conversations", "/debug/pprof/heap", "/metrics"} {
		for name, handler := range map[string]stdhttp.Handler{"public": w, "internal": internal} {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest("GET", "http://rebound.example"+path, nil))
			answer := &reply{status: recorder.Code, body: recorder.Body.Bytes()}
			answer.into(t, &answer.Problem)
			if answer.status != 421 || answer.Code != protocol.CodeWrongHost || answer.RequestID == "" || recorder.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s: %d %s", name, path, answer.status, answer.body)
			}
		}
	}
	if passed {
		t.Error("the internal listener passed a request on")
	}
}

func TestTheInternalListenerAnswersForTheNamesThatTheOperatorLists(t *testing.T) {
	passes := stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, _ *stdhttp.Request) { w.WriteHeader(stdhttp.StatusNoContent) })
	for listen, others := range map[string][]string{"0.0.0.0:9090": {"10.0.0.7", "localhost"}, "127.0.0.1:9090": {"127.0.0.1", "localhost"}} {
		listed, unlisted := OnlyHosts(listen, []string{"turnstone.monitoring.svc", "node-7"}, passes), OnlyHosts(listen, nil, passes)
		ask := func(handler stdhttp.Handler, host string) *httptest.ResponseRecorder {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest("GET", "http://"+host+":9090/metrics", nil))
			return recorder
		}
		for _, host := range append(others, "turnstone.monitoring.svc", "Node-7.") {
			if answer := ask(listed, host); answer.Code != 204 {
				t.Errorf("%s at %s: %d", host, listen, answer.Code)
			}
		}
		for _, host := range []string{"rebound.example", "turnstone.monitoring.svc.rebound.example", "svc", "node-8"} {
			if answer := ask(listed, host); answer.Code != 421 || !strings.Contains(answer.Body.String(), "TURNSTONE_INTERNAL_HOSTS") {
				t.Errorf("%s at %s: %d %s", host, listen, answer.Code, answer.Body)
			}
		}
		if answer := ask(unlisted, "turnstone.monitoring.svc"); answer.Code != 421 {
			t.Errorf("a name that nobody listed, at %s: %d", listen, answer.Code)
		}
	}
}
