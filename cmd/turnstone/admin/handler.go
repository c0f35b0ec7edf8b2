package admin

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"

	"turnstone/protocol"
)

// Turns are the operations behind the turn commands.
type Turns interface {
	Show(ctx context.Context, turn protocol.TurnID) (*Turn, error)
	// Events writes the committed events from the first one on, one per line. With follow it continues until the turn
	// ends.
	Events(ctx context.Context, turn protocol.TurnID, follow bool, write func(frames []byte) error) error
	// Cancel cancels a turn. With force it ends the turn even if no actor can run it.
	Cancel(ctx context.Context, turn protocol.TurnID, force bool) error
}

// Config has the parts of the service that the internal listener shows.
type Config struct {
	Health  http.Handler // serves /health, /ready, /openapi.json and /events.schema.json
	Metrics prometheus.Gatherer
	Turns   Turns
	Nodes   Nodes
	Token   string // see Token
	Log     *zap.Logger
}

// New returns the handler of the internal listener. It requires no session and must therefore not be reachable from the
// public listener. The operator's commands show content and change turns, so they require a token that is derived from
// the service's secret.
func New(config Config) http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/health", "/ready", "/openapi.json", "/events.schema.json"} {
		mux.Handle("GET "+path, config.Health)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(config.Metrics, promhttp.HandlerOpts{ErrorLog: zap.NewStdLog(config.Log.Named("metrics"))}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	turns := turnHandler{config.Turns}
	mux.Handle("GET /admin/turns/{turn}", withToken(config.Token, turns.show))
	mux.Handle("GET /admin/turns/{turn}/events", withToken(config.Token, turns.events))
	mux.Handle("POST /admin/turns/{turn}/cancel", withToken(config.Token, turns.cancel))
	nodes := nodeHandler{config.Nodes}
	mux.Handle("GET /admin/nodes", withToken(config.Token, nodes.list))
	mux.Handle("POST /admin/nodes/{node}/drain", withToken(config.Token, nodes.drain))
	return problems(mux)
}

// problems serves the requests that mux knows. To any other request, mux would respond with a text.
func problems(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refusing, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		refused := refusal{header: http.Header{}}
		refusing.ServeHTTP(&refused, r)
		if allowed := refused.header.Get("Allow"); allowed != "" {
			w.Header().Set("Allow", allowed)
			Fail(w, protocol.Errorf(protocol.CodeMethodNotAllowed, "this path supports %s", allowed))
			return
		}
		Fail(w, protocol.Errorf(protocol.CodeNotFound, "the internal listener does not have this path"))
	})
}

// refusal keeps only the header of a response.
type refusal struct{ header http.Header }

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
func (r *refusal) WriteHeader(int)             {}

// Token derives the token of the operator's commands from the secret that signs. The commands of one installation
// therefore reach its nodes, while a web page in an operator's browser cannot.
func Token(secret []byte) (string, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "turnstone admin 1", sha256.Size)
	return hex.EncodeToString(key), err
}

func withToken(token string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !isBearer || subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			Fail(w, protocol.Errorf(protocol.CodeUnauthenticated, "the token of this installation is required"))
			return
		}
		next(w, r)
	})
}

type turnHandler struct{ turns Turns }

func (h turnHandler) show(w http.ResponseWriter, r *http.Request) {
	turn, ok := turnOf(w, r)
	if !ok {
		return
	}
	seen, err := h.turns.Show(r.Context(), turn)
	if err != nil {
		Fail(w, err)
		return
	}
	WriteJSON(w, http.StatusOK, seen)
}

func (h turnHandler) cancel(w http.ResponseWriter, r *http.Request) {
	turn, ok := turnOf(w, r)
	if !ok {
		return
	}
	state, force := protocol.TurnCancelling, r.URL.Query().Get("force") == "true"
	if force {
		state = protocol.TurnCancelled
	}
	if err := h.turns.Cancel(r.Context(), turn, force); err != nil {
		Fail(w, err)
		return
	}
	WriteJSON(w, http.StatusAccepted, map[string]string{"turn_id": turn.String(), "state": string(state)})
}

// events streams the events as lines. After the first line an error can only cut the response short, which the client
// detects.
func (h turnHandler) events(w http.ResponseWriter, r *http.Request) {
	turn, ok := turnOf(w, r)
	if !ok {
		return
	}
	began := false
	err := h.turns.Events(r.Context(), turn, r.URL.Query().Get("follow") == "true", func(frames []byte) error {
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
		Fail(w, err)
	case err != nil:
		panic(http.ErrAbortHandler) // a complete response would mean that there are no more events
	}
}

func turnOf(w http.ResponseWriter, r *http.Request) (protocol.TurnID, bool) {
	var turn protocol.TurnID
	if err := turn.UnmarshalText([]byte(r.PathValue("turn"))); err != nil {
		Fail(w, protocol.Errorf(protocol.CodeNotFound, "invalid turn identifier"))
		return turn, false
	}
	return turn, true
}
