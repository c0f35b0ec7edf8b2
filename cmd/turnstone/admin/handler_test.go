package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
)

// fakeTurns implements Turns for one turn with three events.
type fakeTurns struct {
	turn      protocol.TurnID
	cancelled bool
	breaks    bool
}

func (f *fakeTurns) Show(_ context.Context, turn protocol.TurnID) (*Turn, error) {
	if turn != f.turn {
		return nil, protocol.Errorf(protocol.CodeNotFound, "no such turn")
	}
	return &Turn{Turn: protocol.Turn{TurnID: turn}}, nil
}

func (f *fakeTurns) Events(_ context.Context, turn protocol.TurnID, _ bool, write func([]byte) error) error {
	if turn != f.turn {
		return protocol.Errorf(protocol.CodeNotFound, "no such turn")
	}
	if err := write([]byte("{\"sequence\":1}\n{\"sequence\":2}\n")); err != nil {
		return err
	}
	if f.breaks {
		return errors.New("the store is unreachable")
	}
	return write([]byte("{\"sequence\":3}\n"))
}

func (f *fakeTurns) Cancel(_ context.Context, turn protocol.TurnID, _ bool) error {
	if turn != f.turn || f.cancelled {
		return protocol.Errorf(protocol.CodeSteeringClosed, "it has ended")
	}
	f.cancelled = true
	return nil
}

func internalServer(t *testing.T, config Config) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "turnstone_test"}))
	health := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]string{"status": "ready"})
	})
	config.Health, config.Metrics, config.Token, config.Log = health, registry, "token", zap.NewNop()
	server := httptest.NewServer(New(config))
	t.Cleanup(server.Close)
	return server.URL
}

func TestTheInternalListenerNeedsNoSession(t *testing.T) {
	base := internalServer(t, Config{})
	for path, want := range map[string]string{
		"/health": "ready", "/ready": "ready", "/openapi.json": "ready", "/events.schema.json": "ready", "/metrics": "turnstone_test 0", "/debug/pprof/cmdline": "test",
	} {
		if status, body, err := sitetest.Fetch(t, http.MethodGet, base+path, ""); status != http.StatusOK || !strings.Contains(body, want) || err != nil {
			t.Errorf("%s: %d %q, %v", path, status, body, err)
		}
	}
}

func TestTheInternalListenerRefusesWithProblems(t *testing.T) {
	handler := New(Config{Metrics: prometheus.NewRegistry(), Log: zap.NewNop(), Health: http.NotFoundHandler()})
	for request, want := range map[string]struct {
		status      int
		code, allow string
	}{
		"GET /":                    {http.StatusNotFound, "not_found", ""},
		"BREW /nope":               {http.StatusNotFound, "not_found", ""},
		"GET /admin":               {http.StatusNotFound, "not_found", ""},
		"POST /metrics":            {http.StatusMethodNotAllowed, "method_not_allowed", "GET, HEAD"},
		"DELETE /health":           {http.StatusMethodNotAllowed, "method_not_allowed", "GET, HEAD"},
		"GET /admin/nodes/1/drain": {http.StatusMethodNotAllowed, "method_not_allowed", "POST"},
	} {
		method, path, _ := strings.Cut(request, " ")
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, httptest.NewRequest(method, path, nil))
		if got.Code != want.status || got.Header().Get("Content-Type") != "application/problem+json" || got.Header().Get("Allow") != want.allow ||
			!strings.Contains(got.Body.String(), `"code":"`+want.code+`"`) {
			t.Errorf("%s: %d %v %s", request, got.Code, got.Header(), got.Body)
		}
	}
}

func TestAnUnavailableServiceSaysWhenToTryAgain(t *testing.T) {
	got := httptest.NewRecorder()
	Fail(got, protocol.Errorf(protocol.CodeUnavailable, "the database is not available"))
	if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %v", got.Code, got.Header())
	}
}

func TestTurnCommandsNeedTheTokenOfTheInstallation(t *testing.T) {
	turns := &fakeTurns{turn: protocol.NewTurnID()}
	base := internalServer(t, Config{Turns: turns})
	path := base + "/admin/turns/" + turns.turn.String()
	for _, token := range []string{"", "another"} {
		for method, path := range map[string]string{http.MethodGet: path + "/events", http.MethodPost: path + "/cancel"} {
			if status, body, _ := sitetest.Fetch(t, method, path, token); status != http.StatusUnauthorized || turns.cancelled {
				t.Errorf("%s with %q: %d %s", path, token, status, body)
			}
		}
	}
	if status, body, err := sitetest.Fetch(t, http.MethodGet, path+"/events", "token"); status != http.StatusOK || strings.Count(body, "\n") != 3 || err != nil {
		t.Errorf("events: %d %q, %v", status, body, err)
	}
	if status, _, _ := sitetest.Fetch(t, http.MethodPost, path+"/cancel", "token"); status != http.StatusAccepted || !turns.cancelled {
		t.Errorf("cancel: %d", status)
	}
	if status, _, _ := sitetest.Fetch(t, http.MethodPost, path+"/cancel", "token"); status != http.StatusConflict {
		t.Errorf("cancel again: %d", status)
	}
	for _, turn := range []string{protocol.NewTurnID().String(), "turn_x"} {
		status, body, _ := sitetest.Fetch(t, http.MethodGet, base+"/admin/turns/"+turn, "token")
		if status != http.StatusNotFound || !strings.Contains(body, `"code":"not_found"`) || !strings.Contains(body, `"request_id":"req_`) {
			t.Errorf("%s: %d %s", turn, status, body)
		}
	}
}

// TestEventsThatFailMidwayAbortTheResponse checks that a client can tell a response that was cut short from a complete
// one.
func TestEventsThatFailMidwayAbortTheResponse(t *testing.T) {
	turns := &fakeTurns{turn: protocol.NewTurnID(), breaks: true}
	base := internalServer(t, Config{Turns: turns})
	if _, body, err := sitetest.Fetch(t, http.MethodGet, base+"/admin/turns/"+turns.turn.String()+"/events", "token"); err == nil {
		t.Errorf("the response looks complete: %q", body)
	}
}
