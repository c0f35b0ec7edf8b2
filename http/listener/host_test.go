package listener

import (
	stdhttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAListenerAcceptsOnlyItsOwnHosts(t *testing.T) {
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
		allowed := NewHosts(listen, "turnstone.example")
		for host, pass := range want {
			if err := allowed.Check(&stdhttp.Request{Host: host}); (err == nil) != pass {
				t.Errorf("%q at %s: %v", host, listen, err)
			}
		}
	}
}

func TestTheInternalListenerAcceptsTheNamesThatTheOperatorLists(t *testing.T) {
	passes := stdhttp.HandlerFunc(func(w stdhttp.ResponseWriter, _ *stdhttp.Request) { w.WriteHeader(stdhttp.StatusNoContent) })
	for listen, others := range map[string][]string{"0.0.0.0:9090": {"10.0.0.7", "localhost"}, "127.0.0.1:9090": {"127.0.0.1", "localhost"}} {
		listed, unlisted := OnlyHosts(listen, []string{"turnstone.monitoring.svc", "node-7"}, passes), OnlyHosts(listen, nil, passes)
		ask := func(handler stdhttp.Handler, host string) *httptest.ResponseRecorder {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest("GET", "http://"+host+":9090/metrics", nil))
			return recorder
		}
		for _, host := range append(others, "turnstone.monitoring.svc", "Node-7.") {
			if resp := ask(listed, host); resp.Code != 204 {
				t.Errorf("%s at %s: %d", host, listen, resp.Code)
			}
		}
		for _, host := range []string{"rebound.example", "turnstone.monitoring.svc.rebound.example", "svc", "node-8"} {
			if resp := ask(listed, host); resp.Code != 421 || !strings.Contains(resp.Body.String(), "TURNSTONE_INTERNAL_HOSTS") {
				t.Errorf("%s at %s: %d %s", host, listen, resp.Code, resp.Body)
			}
		}
		if resp := ask(unlisted, "turnstone.monitoring.svc"); resp.Code != 421 {
			t.Errorf("an unlisted name, at %s: %d", listen, resp.Code)
		}
	}
}
