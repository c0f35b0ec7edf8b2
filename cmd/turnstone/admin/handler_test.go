package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"turnstone/actors/llm/llmtest"
	"turnstone/actors/node"
	"turnstone/actors/routing"
	"turnstone/actors/turn"
	"turnstone/cmd/turnstone/sitetest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
)

// liveTurn starts a turn in a real store, and returns it with the turns of a node that runs no actor of it.
func liveTurn(t *testing.T) (*storetest.Turn, Turns) {
	t.Helper()
	w := storetest.NewWorld(t)
	process := node.New(node.Config{Logger: zap.NewNop()}) // not started: it adopts only what it is asked to
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: process.Host().ID}))
	host := turn.New(turn.Config{
		Node: process.Host(), Store: w.Turns, FollowUps: w.DB.FollowUps, Log: w.Turns, Ownership: w.Turns, Model: llmtest.Answer("fine"),
		Routes: routing.Defaults("b", "d", "c"), MaxLiveTurns: 1, Logger: zap.NewNop(),
	})
	process.Attach(host.Load, host)
	t.Cleanup(process.Stop)
	live := w.Start(w.Request(nil, "hello"))
	live.Append(2)
	return live, NewTurns(w.Turns, host)
}

// interrupted are turns whose store becomes unreachable after the first events.
type interrupted struct{ Turns }

func (i interrupted) Events(ctx context.Context, turn protocol.TurnID, follow bool, write func([]byte) error) error {
	return i.Turns.Events(ctx, turn, follow, func(frames []byte) error {
		return errors.Join(write(frames), errors.New("the store is unreachable"))
	})
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
	live, turns := liveTurn(t)
	base := internalServer(t, Config{Turns: turns})
	path := base + "/admin/turns/" + live.Spec.TurnID.String()
	state := func() protocol.TurnState {
		t.Helper()
		var shown Turn
		status, body, err := sitetest.Fetch(t, http.MethodGet, path, "token")
		if err := json.Unmarshal([]byte(body), &shown); err != nil || status != http.StatusOK {
			t.Errorf("%d %q, %v", status, body, err)
		}
		if err != nil || shown.AccountID != live.Spec.AccountID {
			t.Errorf("%+v, %v", shown, err)
		}
		return shown.State
	}
	const force = "/cancel?force=true" // the turn has no actor
	for _, token := range []string{"", "another"} {
		for method, path := range map[string]string{http.MethodGet: path + "/events", http.MethodPost: path + force} {
			if status, body, _ := sitetest.Fetch(t, method, path, token); status != http.StatusUnauthorized || state().Terminal() {
				t.Errorf("%s with %q: %d %s", path, token, status, body)
			}
		}
	}
	if status, body, err := sitetest.Fetch(t, http.MethodGet, path+"/events", "token"); status != http.StatusOK || body != string(live.Frames) || err != nil {
		t.Errorf("events: %d %q, %v", status, body, err)
	}
	if status, body, _ := sitetest.Fetch(t, http.MethodPost, path+force, "token"); status != http.StatusAccepted || state() != protocol.TurnCancelled {
		t.Errorf("cancel: %d %s", status, body)
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
	live, turns := liveTurn(t)
	base := internalServer(t, Config{Turns: interrupted{turns}})
	if _, body, err := sitetest.Fetch(t, http.MethodGet, base+"/admin/turns/"+live.Spec.TurnID.String()+"/events", "token"); err == nil {
		t.Errorf("the response looks complete: %q", body)
	}
}
