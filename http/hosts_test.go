package http

import (
	stdhttp "net/http"
	"net/http/httptest"
	"testing"

	"turnstone/http/listener"
	"turnstone/protocol"
)

// DNS rebinding: a page whose host name resolves to the address of the service reaches neither listener, whatever the
// path.
func TestARequestForAnotherHostIsRefusedOnBothListeners(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	passed := false
	internal := listener.OnlyHosts("127.0.0.1:9090", nil, stdhttp.HandlerFunc(func(stdhttp.ResponseWriter, *stdhttp.Request) { passed = true }))
	for _, path := range []string{"/", "/health", "/conversations", "/debug/pprof/heap", "/metrics"} {
		for name, handler := range map[string]stdhttp.Handler{"public": w, "internal": internal} {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequest("GET", "http://rebound.example"+path, nil))
			resp := &reply{status: recorder.Code, body: recorder.Body.Bytes()}
			resp.into(t, &resp.Problem)
			if resp.status != 421 || resp.Code != protocol.CodeWrongHost || resp.RequestID == "" || recorder.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s: %d %s", name, path, resp.status, resp.body)
			}
		}
	}
	if passed {
		t.Error("the internal listener passed a request to its handler")
	}
}
