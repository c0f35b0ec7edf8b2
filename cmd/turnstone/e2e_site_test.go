package main

import (
	"context"
	"strings"
	"testing"
	"time"
)

// The tests in files named e2e are of the whole program: the built binary as a process of its own, a real Postgres and a
// real Redis under it, HTTP on loopback above it. What they know of the product is what its clients and its operators
// know.

const (
	// canary stands in every text that a test writes as a user. No log may hold it.
	canary = "canary-7f3a91c2"
	// soon bounds what takes milliseconds, on a machine that has other things to do.
	soon      = 30 * time.Second
	pollEvery = 10 * time.Millisecond
)

// generous are limits that a test does not meet unless it is about them, and a log that says all it can.
var generous = []string{
	"TURNSTONE_LIMIT_CHAT=1000000/1m burst 100000", "TURNSTONE_LIMIT_WRITES=1000000/1m burst 100000",
	"TURNSTONE_LIMIT_READS=1000000/1m burst 100000", "TURNSTONE_LIMIT_SIGNIN=1000000/1m burst 100000",
	"TURNSTONE_MAX_LIVE_TURNS=1000", "TURNSTONE_LOG_LEVEL=debug",
}

// site is a Turnstone as an operator runs it: migrated once, then served, stopped and served again.
type site struct {
	*hosted
	t    *testing.T
	base string // of the API
}

// newSite does not run yet. What more says holds over the generous limits.
func newSite(t *testing.T, more ...string) *site {
	t.Helper()
	i := newHosted(t)
	i.migrate(t)
	i.environment = append(append(i.environment, generous...), more...)
	return &site{hosted: i, t: t, base: "http://" + i.public}
}

// up starts the program and waits until it serves. After the test its log is searched for what must not be there.
func (s *site) up() *process {
	s.t.Helper()
	p := s.serve(s.t)
	s.t.Cleanup(func() {
		p.kill()
		checkLog(s.t, p.complaints()+p.printed())
	})
	return p
}

func checkLog(t *testing.T, log string) {
	t.Helper()
	for _, forbidden := range []string{canary, "s1_", "DATA RACE", "panic"} {
		if at := strings.Index(log, forbidden); at >= 0 {
			t.Errorf("the log holds %q: …%s…", forbidden, log[max(0, at-300):min(len(log), at+1000)])
		}
	}
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(soon)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

// pause is for clients that try again: a moment, or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// within is a context of the test with a deadline.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
