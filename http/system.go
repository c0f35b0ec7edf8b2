package http

import (
	"context"
	stdhttp "net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"go.uber.org/zap"

	"turnstone/protocol"
)

type health struct {
	Status string `json:"status" enum:"ok"`
}

// getHealth asks no dependency: it tells that the process answers.
func (s *Server) getHealth(context.Context, *nothing) (*body[health], error) {
	return ok(health{Status: "ok"}), nil
}

// Probe asks one dependency whether it works.
type Probe func(ctx context.Context) error

// The bounds of a readiness answer: a fault shows within three seconds, and each dependency is asked at most once a
// second, however many callers ask.
const (
	probeTimeout   = 1500 * time.Millisecond
	probeSlow      = time.Second
	readyFor       = time.Second
	sessionTimeout = time.Second // for the session of a caller of /ready
)

// checkPersistence is the check without which no session can be checked.
const checkPersistence = "persistence"

// The verdicts about one dependency, and about all of them.
const (
	checkOK   = "ok"
	checkSlow = "slow" // it answers, but late: still ready
	checkDown = "down"

	statusReady    = "ready"
	statusNotReady = "not_ready"
)

// Readiness is the answer of GET /ready.
type Readiness struct {
	Status   string            `json:"status" enum:"ready,not_ready"`
	Draining bool              `json:"draining,omitempty" doc:"The node hands its turns on and takes no new ones: not ready, whatever the checks say."`
	Scanner  string            `json:"scanner,omitempty" doc:"The engine that judges files; test-signatures only knows the test file of scanners."`
	Checks   map[string]string `json:"checks" doc:"persistence, cache, object_storage, malware_scanning, model_access, with a private Postgres also disk: ok, slow or down."`
}

// readiness remembers the last answer for a moment.
type readiness struct {
	probes  map[string]Probe
	scanner string
	log     *zap.Logger
	now     func() time.Time

	checks atomic.Int64 // how many have ended

	mu   sync.Mutex
	last Readiness // guarded by mu
	at   time.Time // guarded by mu
}

// check asks every dependency at once. Callers that come meanwhile wait for the same answer.
func (c *readiness) check(ctx context.Context) Readiness { return c.checkAfter(ctx, 0) }

// checkAfter is check that accepts a remembered answer only from a check that ended after the n-th.
func (c *readiness) checkAfter(ctx context.Context, n int64) Readiness {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.checks.Load() > n && c.now().Sub(c.at) < readyFor {
		return c.last
	}
	defer c.checks.Add(1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		verdict = Readiness{Status: statusReady, Scanner: c.scanner, Checks: make(map[string]string, len(c.probes))}
	)
	for name, probe := range c.probes {
		all.Go(func() {
			result := c.ask(ctx, name, probe)
			mu.Lock()
			defer mu.Unlock()
			verdict.Checks[name] = result
			if result == checkDown {
				verdict.Status = statusNotReady
			}
		})
	}
	all.Wait()
	c.last, c.at = verdict, c.now()
	return verdict
}

// ask waits for one probe no longer than the timeout, whether or not the probe itself heeds it.
func (c *readiness) ask(ctx context.Context, name string, probe Probe) string {
	began := time.Now()
	answer := make(chan error, 1)
	go func() { answer <- probe(ctx) }()
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case err != nil:
		c.log.Warn("a dependency is down", zap.String("check", name), zap.Error(err))
		return checkDown
	case time.Since(began) > probeSlow:
		return checkSlow
	}
	return checkOK
}

func (s *Server) getReady(ctx context.Context, _ *nothing) (*withStatus[Readiness], error) {
	verdict := s.ready.check(ctx)
	if s.Draining != nil && s.Draining() {
		verdict.Status, verdict.Draining = statusNotReady, true
	}
	status := stdhttp.StatusOK
	if verdict.Status != statusReady {
		status = stdhttp.StatusServiceUnavailable
	}
	return &withStatus[Readiness]{Status: status, Body: verdict}, nil
}

// reportNotReady answers a caller of /ready who was not authenticated with the checks, if persistence is down: then no
// session can be checked, and nobody can sign in. It returns false if the caller has to get the error that is the cause.
func (s *Server) reportNotReady(w stdhttp.ResponseWriter, r *stdhttp.Request, checked int64, cause error) bool {
	if protocol.CodeOf(cause) != protocol.CodeUnavailable {
		checked = 0
	}
	verdict := s.ready.checkAfter(r.Context(), checked)
	if verdict.Checks[checkPersistence] != checkDown {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(stdhttp.StatusServiceUnavailable)
	_ = writeJSON(w, verdict) // the caller may be gone
	return true
}

// mayBeUnready documents that /ready answers 503 with its checks, beside the usual problem.
func mayBeUnready(api huma.API, op *huma.Operation) {
	answer[Readiness](api, op, stdhttp.StatusServiceUnavailable, "Not ready: at least one dependency is down.")
}

// InternalHandler answers /health and /ready for the internal listener, where nobody signs in.
func (s *Server) InternalHandler() stdhttp.Handler {
	mux := stdhttp.NewServeMux()
	mux.HandleFunc("GET /health", func(w stdhttp.ResponseWriter, _ *stdhttp.Request) {
		writeInternal(w, stdhttp.StatusOK, health{Status: "ok"})
	})
	mux.HandleFunc("GET /ready", func(w stdhttp.ResponseWriter, r *stdhttp.Request) {
		answer, _ := s.getReady(r.Context(), nil) // it has no error to give
		writeInternal(w, answer.Status, answer.Body)
	})
	return mux
}

func writeInternal(w stdhttp.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = writeJSON(w, value) // the asker may be gone
}

// Version is the answer of GET /version.
type Version struct {
	Service     string  `json:"service" enum:"turnstone"`
	Environment string  `json:"environment"`
	BuildSHA    *string `json:"build_sha"`
	ModelFamily string  `json:"model_provider_family"`
}

func (s *Server) getVersion(context.Context, *nothing) (*body[Version], error) {
	version := Version{Service: "turnstone", Environment: s.Environment, ModelFamily: s.ModelFamily}
	if s.BuildSHA != "" {
		version.BuildSHA = &s.BuildSHA
	}
	return ok(version), nil
}
