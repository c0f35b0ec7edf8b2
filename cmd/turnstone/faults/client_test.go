package faults

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
)

// clientPatience is how long a client waits for an answer over a broken link.
const clientPatience = 4 * time.Second

// clientLane breaks the ways of clients to one site, each its own, all at once: nobody else may notice. What comes over
// a broken link may be nothing; what is done is done whole, and once; the turn does not need its reader.
func clientLane(t *testing.T, r *report) {
	t.Run("client", func(t *testing.T) {
		site := sitetest.NewSite(t)
		site.Up()
		var preparing sync.Mutex // sign-ups take the processor: one after the other
		var all []func()
		for _, f := range append(faultList, fault{"garbage sent", garbledBothWays}) {
			all = append(all, func() {
				t.Run(f.name, func(t *testing.T) { clientRow(t, r, site, f, &preparing) })
			})
		}
		beside(all...)
	})
}

// garbledBothWays also makes the requests another text than was sent.
func garbledBothWays(l *link) (heal func()) {
	return l.mangle("garble", "upstream", "downstream")
}

func clientRow(t *testing.T, r *report, site *sitetest.Site, f fault, preparing *sync.Mutex) {
	l := newLink(t, strings.TrimPrefix(site.Base, "http://"))
	preparing.Lock()
	w := newRow(t, site, r, "client", f.name)
	preparing.Unlock()
	beside1 := *w.User // the same account by a way that holds
	far := *w.User
	far.Base = "http://" + l.address()
	w.ended = append(w.ended, w.watchFrom(&far))
	writers := begin(t, &far, clientPatience, nil)
	sitetest.Eventually(t, "something was written", func() bool { kept, _ := writers.acknowledged(); return kept >= stormers })

	planned := w.Ledger.Plan()
	heal := f.strike(l)
	over := time.NewTimer(clientPatience)
	beside(
		func() { w.farAway(&far) },
		func() { w.ask(works, works) }, // by the way that holds
		w.healthy,
	)
	<-over.C
	heal()
	far.Client.CloseIdleConnections()
	w.report.cell()
	if _, err := untilAnswered(t, &far, "/conversations/"+w.kept); err != nil {
		t.Error(err)
	}
	writers.end()
	w.wholeTurn()
	planned()
	w.settle()
	writers.hold(t, &row{User: &beside1, t: t, site: site, report: r, link: "client", fault: f.name}, superuser(t, site))
}

// watchFrom follows the turn as a client does that mistrusts its connection: it comes again when all is not over soon.
func (w *row) watchFrom(far *sitetest.User) <-chan error {
	ended := make(chan error, 1)
	ctx := sitetest.Within(w.t, sitetest.Patience)
	go func() {
		for after := int64(0); ; {
			finished, err := followFor(ctx, far, w.turn, &after)
			if err == nil && !finished {
				err = sitetest.Pause(ctx, sitetest.PollEvery)
			}
			if err != nil || finished {
				ended <- err
				return
			}
		}
	}()
	return ended
}

// followFor reads over one connection, for a while.
func followFor(ctx context.Context, far *sitetest.User, turn string, after *int64) (finished bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, clientPatience)
	defer cancel()
	s, refused, err := far.Follow(ctx, turn, *after, "")
	if err != nil || refused != nil {
		return false, nil //nolint:nilerr // over a broken link anything may come
	}
	defer s.Close()
	err = s.Drain(nil)
	*after = s.After
	return s.Finished, err
}

// farAway asks over the broken link. No answer is an answer there; one that comes is true.
func (w *row) farAway(far *sitetest.User) {
	ctx, cancel := context.WithTimeout(w.t.Context(), clientPatience)
	defer cancel()
	a, err := far.Ask(ctx, http.MethodGet, "/conversations/"+w.kept, nil)
	switch {
	case err != nil: // a client that gets nothing comes again
	case a.Status == http.StatusOK && string(a.Body) != w.before:
		w.t.Errorf("over the broken link came\n%s\nand before the fault\n%s", a.Body, w.before)
	case a.Status != http.StatusOK && a.Status != http.StatusBadRequest:
		w.t.Errorf("over the broken link came %d %s", a.Status, a.Body)
	}
}

// untilAnswered asks again and again: a connection of before the fault may be dead without a word.
func untilAnswered(t *testing.T, u *sitetest.User, path string) (*sitetest.Answer, error) {
	ctx := sitetest.Within(t, sitetest.Patience)
	for {
		attempt, cancel := context.WithTimeout(ctx, clientPatience)
		a, err := u.Ask(attempt, http.MethodGet, path, nil)
		cancel()
		if err == nil && a.Status == http.StatusOK {
			return a, nil
		}
		if err := sitetest.Pause(ctx, sitetest.PollEvery); err != nil {
			return nil, err
		}
	}
}
