package ready

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnstone/protocol/timelimit"
)

// Probe checks whether one dependency works.
type Probe func(ctx context.Context) error

// Bounds of the readiness checks: a fault is reported within three seconds, and each dependency is checked at most once
// a second, however many callers there are.
const (
	probeSlow = time.Second
	readyFor  = time.Second
)

var (
	probeTimeout = timelimit.Of(1500 * time.Millisecond)
	// SessionTimeout limits the lookup of the session of a caller of /ready.
	SessionTimeout = timelimit.Of(time.Second)
)

// CheckPersistence is the check of the database. While the database is down, no session can be verified.
const CheckPersistence = "persistence"

// Results of one check, and of all checks together.
const (
	checkOK   = "ok"
	checkSlow = "slow" // the dependency responds late; the node is still ready
	CheckDown = "down"

	StatusReady    = "ready"
	StatusNotReady = "not_ready"

	RetryAfter = "1" // seconds, of a response that is not ready: a check is repeated after that time
)

// Readiness is the response of GET /ready.
type Readiness struct {
	Status   string            `json:"status" enum:"ready,not_ready"`
	Draining bool              `json:"draining,omitempty" doc:"The node is draining: it hands over its turns and accepts no new ones. It is not ready, whatever the results of the checks."`
	Scanner  string            `json:"scanner,omitempty" doc:"The engine that scans files for malware. The engine test-signatures only detects the EICAR test file."`
	Checks   map[string]string `json:"checks" doc:"The result of each check: ok, slow or down. The checks are persistence, cache, object_storage, malware_scanning, model_access and, with a private Postgres, disk."`
}

// Checker runs the checks, and reuses their last result for readyFor.
type Checker struct {
	probes  map[string]Probe
	scanner string
	log     *zap.Logger
	now     func() time.Time

	ended atomic.Int64 // the number of checks

	mu   sync.Mutex
	last Readiness // guarded by mu
	at   time.Time // guarded by mu
}

// New returns a Checker. scanner names the engine that scans files for malware.
func New(probes map[string]Probe, scanner string, log *zap.Logger, now func() time.Time) *Checker {
	return &Checker{probes: probes, scanner: scanner, log: log, now: now}
}

// Check checks all dependencies concurrently. Callers that arrive in the meantime wait for the same result.
func (c *Checker) Check(ctx context.Context) Readiness { return c.CheckAfter(ctx, 0) }

// Ended returns the number of checks that have ended.
func (c *Checker) Ended() int64 { return c.ended.Load() }

// CheckAfter is Check, but reuses the last result only if more than n checks have ended.
func (c *Checker) CheckAfter(ctx context.Context, n int64) Readiness {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended.Load() > n && c.now().Sub(c.at) < readyFor {
		return c.last
	}
	defer c.ended.Add(1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTimeout)
	defer cancel()
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		report = Readiness{Status: StatusReady, Scanner: c.scanner, Checks: make(map[string]string, len(c.probes))}
	)
	for name, probe := range c.probes {
		all.Go(func() {
			result := c.runProbe(ctx, name, probe)
			mu.Lock()
			defer mu.Unlock()
			report.Checks[name] = result
			if result == CheckDown {
				report.Status = StatusNotReady
			}
		})
	}
	all.Wait()
	c.last, c.at = report, c.now()
	return report
}

// Without returns the report as if the excluded checks were not required: it still contains their results, but they do
// not affect its status. It returns false if a name is not that of a check.
func (r Readiness) Without(excluded []string) (Readiness, bool) {
	r.Status = StatusReady
	known := 0
	for name, result := range r.Checks {
		if slices.Contains(excluded, name) {
			known++
		} else if result == CheckDown {
			r.Status = StatusNotReady
		}
	}
	return r, known == len(excluded)
}

// runProbe runs one probe. It waits no longer than ctx, even if the probe ignores ctx.
func (c *Checker) runProbe(ctx context.Context, name string, probe Probe) string {
	started := time.Now()
	result := make(chan error, 1)
	go func() { result <- probe(ctx) }()
	var err error
	select {
	case err = <-result:
	case <-ctx.Done():
		err = ctx.Err()
	}
	switch {
	case err != nil:
		c.log.Warn("a dependency is down", zap.String("check", name), zap.Error(err))
		return CheckDown
	case time.Since(started) > probeSlow:
		return checkSlow
	}
	return checkOK
}
