// Package sitetest is for tests of the whole program: the built binary as a process of its own, a real Postgres and a real
// Redis under it, HTTP on loopback above it. What it knows of the product is what clients and operators know. A package
// that uses it runs its tests by RunMain.
package sitetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

const (
	// Canary stands in every text that a test writes as a user. No log may hold it.
	Canary = "canary-7f3a91c2"
	// Soon bounds what takes milliseconds, on a machine that has other things to do.
	Soon = 30 * time.Second
	// PollEvery is the pause between two looks at a condition.
	PollEvery = 10 * time.Millisecond
)

// generous are limits that a test does not meet unless it is about them, and a log that says all it can.
var generous = []string{
	"TURNSTONE_LIMIT_CHAT=1000000/1m burst 100000", "TURNSTONE_LIMIT_WRITES=1000000/1m burst 100000",
	"TURNSTONE_LIMIT_READS=1000000/1m burst 100000", "TURNSTONE_LIMIT_REPLAYS=1000000/1m burst 100000", "TURNSTONE_LIMIT_REFUSALS=1000000/1m burst 100000", "TURNSTONE_LIMIT_SIGNIN=1000000/1m burst 100000",
	"TURNSTONE_MAX_LIVE_TURNS=1000", "TURNSTONE_LOG_LEVEL=debug",
}

// Site is a Turnstone as an operator runs it: migrated once, then served, stopped and served again.
type Site struct {
	*Hosted
	t    *testing.T
	Base string // of the API
}

// NewSite does not run yet. What more says holds over the generous limits.
func NewSite(t *testing.T, more ...string) *Site {
	t.Helper()
	return NewSiteOn(t, embeddedtest.Postgres(t), more...)
}

// NewSiteOn is NewSite with its database on a server that the test may break.
func NewSiteOn(t *testing.T, postgres *embedded.Postgres, more ...string) *Site {
	t.Helper()
	i := NewHostedOn(t, postgres)
	i.Migrate(t)
	i.Environment = append(append(i.Environment, generous...), more...)
	return &Site{Hosted: i, t: t, Base: "http://" + i.Public}
}

// Up starts the program and waits until it serves. After the test its log is searched for what must not be there.
func (s *Site) Up() *Process {
	s.t.Helper()
	p := s.Serve(s.t)
	s.t.Cleanup(func() {
		p.Kill()
		CheckLog(s.t, p.Complaints()+p.Printed())
	})
	return p
}

// CheckLog fails the test when a log holds what no log may hold.
func CheckLog(t *testing.T, log string) {
	t.Helper()
	for _, forbidden := range []string{Canary, "s1_", "DATA RACE", "panic"} {
		if at := strings.Index(log, forbidden); at >= 0 {
			t.Errorf("the log holds %q: …%s…", forbidden, log[max(0, at-300):min(len(log), at+1000)])
		}
	}
}

// Eventually asks until the answer is yes.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(Soon)
	ticker := time.NewTicker(PollEvery)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not in time: %s", what)
		}
	}
}

// Pause is for clients that try again: a moment, or the end of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Within is a context of the test with a deadline.
func Within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
