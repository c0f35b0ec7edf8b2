package main

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"turnstone/protocol"
)

// operations are the operations behind the turn commands.
type operations interface {
	Show(ctx context.Context, turn protocol.TurnID) (*operatorTurn, error)
	// Events writes the committed events from the first one on, one per line. With follow it continues until the turn
	// ends.
	Events(ctx context.Context, turn protocol.TurnID, follow bool, write func(frames []byte) error) error
	// Cancel cancels a turn. With force it ends the turn even if no actor can run it.
	Cancel(ctx context.Context, turn protocol.TurnID, force bool) error
}

// internalHandler serves the internal listener, which is for operators. It requires no session and must therefore not
// be reachable from the public listener. The turn commands show content and change turns, so they require a token that
// is derived from the service's secret. health serves /health and /ready.
func internalHandler(health http.Handler, metrics prometheus.Gatherer, turns operations, token string, log *zap.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /health", health)
	mux.Handle("GET /ready", health)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorLog: zap.NewStdLog(log.Named("metrics"))}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	admin := adminHandler{turns: turns}
	mux.Handle("GET /admin/turns/{turn}", withToken(token, admin.show))
	mux.Handle("GET /admin/turns/{turn}/events", withToken(token, admin.events))
	mux.Handle("POST /admin/turns/{turn}/cancel", withToken(token, admin.cancel))
	return mux
}

// adminToken derives the token of the turn commands from the secret that signs. The commands of one installation
// therefore reach its nodes, while a web page in an operator's browser cannot.
func adminToken(secret []byte) (string, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "turnstone admin 1", sha256.Size)
	return hex.EncodeToString(key), err
}

func withToken(token string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !isBearer || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			writeJSON(w, http.StatusUnauthorized, adminError{"the token of this installation is required"})
			return
		}
		next(w, r)
	})
}

type adminHandler struct{ turns operations }

// adminError is the response body of a failed turn command.
type adminError struct {
	Detail string `json:"detail"`
}

func (a adminHandler) show(w http.ResponseWriter, r *http.Request) {
	turn, ok := turnOf(w, r)
	if !ok {
		return
	}
	seen, err := a.turns.Show(r.Context(), turn)
	if err != nil {
		adminFail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, seen)
}

func (a adminHandler) cancel(w http.ResponseWriter, r *http.Request) {
	turn, ok := turnOf(w, r)
	if !ok {
		return
	}
	state, force := protocol.TurnCancelling, r.URL.Query().Get("force") == "true"
	if force {
		state = protocol.TurnCancelled
	}
	if err := a.turns.Cancel(r.Context(), turn, force); err != nil {
		adminFail(w, err)
		return
	}
	writeJSON(w, http.StatusAccepted, map[string]string{"turn_id": turn.String(), "state": string(state)})
}

// events streams the events as lines. After the first line an error can only cut the response short, which the client
// detects.
func (a adminHandler) events(w http.ResponseWriter, r *http.Request) {
	turn, ok := turnOf(w, r)
	if !ok {
		return
	}
	began := false
	err := a.turns.Events(r.Context(), turn, r.URL.Query().Get("follow") == "true", func(frames []byte) error {
		if !began {
			w.Header().Set("Content-Type", "application/x-ndjson")
			began = true
		}
		if _, err := w.Write(frames); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	})
	switch {
	case err != nil && !began:
		adminFail(w, err)
	case err != nil:
		panic(http.ErrAbortHandler) // a complete response would mean that there are no more events
	}
}

func turnOf(w http.ResponseWriter, r *http.Request) (protocol.TurnID, bool) {
	var turn protocol.TurnID
	if err := turn.UnmarshalText([]byte(r.PathValue("turn"))); err != nil {
		writeJSON(w, http.StatusNotFound, adminError{"invalid turn identifier"})
		return turn, false
	}
	return turn, true
}

func adminFail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch protocol.CodeOf(err) {
	case protocol.CodeNotFound:
		status = http.StatusNotFound
	case protocol.CodeSteeringClosed, protocol.CodeConflict, protocol.CodeNotDeliverable:
		status = http.StatusConflict
	case protocol.CodeUnavailable:
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, adminError{err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // it fails only if the client is gone
}
