package faults

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol/clocktest"
)

// clientTimeout is how long a client waits for a response over a broken link.
const clientTimeout = 4 * time.Second

// clientLane breaks the links of several clients to one site at the same time, each with a different fault. No other
// client may be affected. A request over a broken link may get no response; it has one complete effect or none. The
// turn does not need its reader.
func clientLane(t *testing.T, r *report) {
	t.Run("client", func(t *testing.T) {
		site := sitetest.NewSite(t)
		site.Start()
		var preparing sync.Mutex // sign-ups need much processor time, so they run one at a time
		var all []func()
		for _, f := range append(faultList, fault{"garbage sent", garbledBothWays}) {
			all = append(all, func() {
				t.Run(f.name, func(t *testing.T) { clientRow(t, r, site, f, &preparing) })
			})
		}
		runConcurrently(all...)
	})
}

// garbledBothWays also garbles the requests.
func garbledBothWays(l *link) (repair func()) {
	return l.Inject(garble)
}

func clientRow(t *testing.T, r *report, site *sitetest.Site, f fault, preparing *sync.Mutex) {
	l := newLink(t, strings.TrimPrefix(site.Base, "http://"))
	preparing.Lock()
	w := newRow(t, site, r, "client", f.name)
	preparing.Unlock()
	direct := *w.User // the same account over an intact link
	viaLink := w.User.Via(t, "http://"+l.Address)
	w.ended = append(w.ended, w.watchFrom(viaLink))
	writers := startWriters(t, viaLink, clientTimeout, nil)
	sitetest.Eventually(t, "something was written", func() bool { n, _ := writers.acknowledged(); return n >= stormWriters })

	planned := w.Ledger.Plan()
	repair := f.inject(l)
	over := time.NewTimer(clientTimeout)
	runConcurrently(
		func() { w.readOverBrokenLink(viaLink) },
		func() { w.sendAll(works, works) }, // over the intact link
		w.healthy,
	)
	<-over.C
	repair()
	viaLink.HTTP.CloseIdleConnections()
	w.report.cell()
	if _, err := requestUntilSuccess(t, viaLink, "/conversations/"+w.idle); err != nil {
		t.Error(err)
	}
	writers.end()
	planned()
	w.wholeTurn()
	w.checkWrites()
	writers.checkStored(t, &row{User: &direct, t: t, site: site, report: r, link: "client", fault: f.name}, superuser(t, site))
}

// watchFrom follows the turn. It reconnects after every clientTimeout until the turn has ended, because a broken link
// may not report an error.
func (w *row) watchFrom(viaLink *sitetest.User) <-chan error {
	ended := make(chan error, 1)
	ctx := sitetest.Within(w.t, sitetest.HangGuard)
	go func() {
		var after int64
		var err error
		waited := clocktest.Poll(ctx, sitetest.PollEvery, func() (finished bool) {
			finished, err = followFor(ctx, viaLink, w.turn, &after)
			return finished || err != nil
		})
		ended <- cmp.Or(err, waited)
	}()
	return ended
}

// followFor follows the turn over one connection for up to clientTimeout.
func followFor(ctx context.Context, viaLink *sitetest.User, turn string, after *int64) (finished bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	s, refused, err := viaLink.Follow(ctx, turn, *after, "")
	if err != nil || refused != nil {
		return false, nil // any response is possible over a broken link
	}
	defer s.Close()
	err = s.Drain(nil)
	*after = s.After()
	return s.Finished(), err
}

// readOverBrokenLink reads over the broken link. It may get no response, but a response that it gets must be correct.
func (w *row) readOverBrokenLink(viaLink *sitetest.User) {
	ctx, cancel := context.WithTimeout(w.t.Context(), clientTimeout)
	defer cancel()
	a, err := viaLink.Request(ctx, http.MethodGet, "/conversations/"+w.idle, nil)
	switch {
	case err != nil: // a missing response is allowed
	case a.Status == http.StatusOK && string(a.Body) != w.before:
		w.t.Errorf("the response over the broken link is\n%s\nand before the fault it was\n%s", a.Body, w.before)
	case a.Status != http.StatusOK && a.Status != http.StatusBadRequest:
		w.t.Errorf("the response over the broken link is %d %s", a.Status, a.Body)
	}
}

// requestUntilSuccess repeats a request until it succeeds. A connection from before the fault may be dead without an
// error.
func requestUntilSuccess(t *testing.T, u *sitetest.User, path string) (a *sitetest.Response, err error) {
	ctx := sitetest.Within(t, sitetest.HangGuard)
	err = clocktest.Poll(ctx, sitetest.PollEvery, func() bool {
		attempt, cancel := context.WithTimeout(ctx, clientTimeout)
		defer cancel()
		var failed error
		a, failed = u.Request(attempt, http.MethodGet, path, nil)
		return failed == nil && a.Status == http.StatusOK
	})
	return a, err
}
