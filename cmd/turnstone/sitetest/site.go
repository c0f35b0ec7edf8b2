// Package sitetest runs the whole program for tests: the built binary as a separate process, with a real Postgres and a
// real Redis, and HTTP on loopback. It uses the product only as clients and operators do. The TestMain of a package
// that uses it calls RunMain.
package sitetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"turnstone/persistence/pgtest"
	"turnstone/protocol/clocktest"
	"turnstone/providers/embedded"
)

const (
	// Canary is part of every text that a test writes as a user. No log may contain it.
	Canary = "canary-7f3a91c2"
	// HangGuard is how long a test waits for a condition, a response or a program before it reports a hang.
	HangGuard = clocktest.HangGuard
	// PollEvery is the interval at which a condition is checked.
	PollEvery = 10 * time.Millisecond
)

// generous contains limits that only tests of these limits reach, and the most detailed log level.
var generous = []string{
	"TURNSTONE_LIMIT_CHAT=1000000/1m burst 100000", "TURNSTONE_LIMIT_WRITES=1000000/1m burst 100000",
	"TURNSTONE_LIMIT_READS=1000000/1m burst 100000", "TURNSTONE_LIMIT_REPLAYS=1000000/1m burst 100000",
	"TURNSTONE_LIMIT_SEARCH=1000000/1m burst 100000", "TURNSTONE_LIMIT_REFUSALS=1000000/1m burst 100000", "TURNSTONE_LIMIT_SIGNIN=1000000/1m burst 100000",
	"TURNSTONE_LIMIT_UPLOADS=1000000/1m burst 100000",
	"TURNSTONE_MAX_LIVE_TURNS=1000", "TURNSTONE_LOG_LEVEL=debug",
}

// Site is an installation as an operator runs it: with a migrated database, and started and stopped any number of times.
type Site struct {
	*ServeInstallation
	t    *testing.T
	Base string // of the API
}

// NewSite creates an installation without starting it. Its database is a copy of one that the migrations of the test's own
// build have created. Settings in more override the generous limits.
func NewSite(t *testing.T, more ...string) *Site {
	t.Helper()
	database := pgtest.Clone(t)
	return newSite(t, newHosted(t, database.OwnerURL, database.URL), more)
}

// NewSiteOn is NewSite with a database on another server, which the test may break. The program migrates it.
func NewSiteOn(t *testing.T, postgres *embedded.Postgres, more ...string) *Site {
	t.Helper()
	return NewSiteOf(t, NewHostedOn(t, postgres), more...)
}

// NewSiteOf is NewSite for an installation, with the schema of its program.
func NewSiteOf(t *testing.T, i *ServeInstallation, more ...string) *Site {
	t.Helper()
	i.Migrate(t)
	return newSite(t, i, more)
}

func newSite(t *testing.T, i *ServeInstallation, more []string) *Site {
	t.Helper()
	i.Environment = append(append(i.Environment, generous...), more...)
	return &Site{ServeInstallation: i, t: t, Base: "http://" + i.Public}
}

// Start starts the program and waits until it serves. At the end of the test it searches the program's log for text
// that no log may contain.
func (s *Site) Start() *Process {
	s.t.Helper()
	p := s.Serve(s.t)
	s.t.Cleanup(func() {
		p.Kill()
		CheckLog(s.t, p.Stderr()+p.Stdout())
	})
	return p
}

// CheckLog fails the test if a log contains user text, a token of a session or of a mail, a data race or a panic.
func CheckLog(t *testing.T, log string) {
	t.Helper()
	for _, forbidden := range []string{Canary, "s1_", "mt1_", "DATA RACE", "panic"} {
		if at := strings.Index(log, forbidden); at >= 0 {
			t.Errorf("the log contains %q: …%s…", forbidden, log[max(0, at-300):min(len(log), at+1000)])
		}
	}
}

// Eventually calls done until it returns true. It fails the test after HangGuard.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), HangGuard) // also in a cleanup of the test
	defer cancel()
	if clocktest.Poll(ctx, PollEvery, done) != nil {
		t.Fatalf("timed out waiting until %s", what)
	}
}

// Within returns the context of the test with a deadline.
func Within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
