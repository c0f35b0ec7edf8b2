package faults

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/providers/embedded"
	"turnstone/providers/embedded/embeddedtest"
)

// What cells allow. 200 stands for every success.
var (
	works          = want{[]int{200}, atDeadline}
	refusedAtOnce  = want{[]int{503}, atOnce}
	refusedByRedis = want{[]int{503}, withoutRedis}
	mixedByRedis   = want{[]int{200, 503}, withoutRedis}
	refusedAtLock  = want{[]int{503}, atLock}
	refusedLate    = want{[]int{503}, atDeadline}
	mixed          = want{[]int{200, 503}, atDeadline} // whichever: it says the truth
)

// expectation is a row of the table: what readers and writers get during a fault. down says that /ready names the link's
// check; where it does not, the link may be bad without being away.
type expectation struct {
	fault       string
	read, write want
	down        bool
	lasts       time.Duration // at least
}

// Everything that is durable needs Postgres: without it nothing is claimed. A live turn stops at the last event that it
// could store and goes on afterwards.
var postgresTable = []expectation{
	{fault: "down", read: refusedAtOnce, write: refusedAtOnce, down: true},
	{fault: "refused", read: refusedAtOnce, write: refusedAtOnce, down: true},
	{fault: "slow", read: refusedLate, write: refusedLate, down: true},
	{fault: "reset", read: refusedAtOnce, write: refusedAtOnce, down: true},
	{fault: "half-open", read: refusedLate, write: refusedLate, down: true},
	{fault: "flapping", read: mixed, write: mixed, lasts: 4 * flapEvery},
	{fault: "bandwidth", read: mixed, write: mixed},
	{fault: "garbage", read: refusedLate, write: refusedLate, down: true},
}

// Redis only counts. What changes something is refused at once while nobody counts; reads and live turns do not notice.
var redisTable = []expectation{
	{fault: "down", read: works, write: refusedByRedis, down: true},
	{fault: "refused", read: works, write: refusedByRedis, down: true},
	{fault: "slow", read: works, write: refusedByRedis, down: true},
	{fault: "reset", read: works, write: refusedByRedis, down: true},
	{fault: "half-open", read: works, write: refusedByRedis, down: true},
	{fault: "flapping", read: works, write: mixedByRedis, lasts: 4 * flapEvery},
	{fault: "bandwidth", read: works, write: mixedByRedis},
	{fault: "garbage", read: works, write: refusedByRedis, down: true},
}

// lane is a site of its own and the rows that run on it, one after the other.
type lane struct {
	name  string
	check string // of /ready
	rows  []expectation
	// via puts a proxy between the site and what the lane is about.
	via func(t *testing.T, site *sitetest.Site) *link
	// lives: the live turn does not need the link, so it ends while the fault lasts.
	lives bool
}

func TestEveryDependencyMayBreakInEveryWay(t *testing.T) {
	t.Parallel()
	lanes := []lane{
		{name: "postgres", check: "persistence", via: viaPostgres, rows: postgresTable[:4]},
		{name: "postgres", check: "persistence", via: viaPostgres, rows: postgresTable[4:]},
		{name: "redis", check: "cache", via: viaRedis, rows: redisTable, lives: true},
	}
	r := newReport()
	t.Cleanup(func() { r.print(t) })
	var running sync.WaitGroup
	for _, l := range lanes {
		running.Go(func() { l.run(t, r) })
	}
	for _, rows := range modelTable {
		running.Go(func() { modelLane(t, r, rows) })
	}
	running.Go(func() { clientLane(t, r) })
	running.Wait()
}

// viaPostgres puts the site's database behind a proxy.
func viaPostgres(t *testing.T, site *sitetest.Site) *link {
	t.Helper()
	server := embeddedtest.Postgres(t)
	l := newLink(t, relay(t, postgresSocket(t, server.DSN("nobody", "none"))))
	site.Environment = append(site.Environment, "DATABASE_URL="+overTCP(t, site.Login, l.address()))
	return l
}

// viaRedis puts the limiter behind a proxy.
func viaRedis(t *testing.T, site *sitetest.Site) *link {
	t.Helper()
	l := newLink(t, relay(t, embeddedtest.Redis(t).URL()[len("unix://"):]))
	site.Environment = append(site.Environment, "REDIS_URL=redis://"+l.address()+"/0")
	return l
}

// run goes through the rows, then holds what their writes have become: a key whose first request died is free only
// after a while, and so all of them wait together.
func (l lane) run(t *testing.T, r *report) {
	t.Run(l.name, func(t *testing.T) {
		site := sitetest.NewSite(t)
		broken := l.via(t, site)
		site.Up()
		var settled []func()
		for _, e := range l.rows {
			t.Run(e.fault, func(inner *testing.T) {
				w := newRow(inner, site, r, l.name, e.fault)
				writers := l.during(w, e, broken)
				settled = append(settled, func() {
					w.t = t
					w.settle()
					writers.hold(t, w, superuser(t, site))
				})
			})
		}
		beside(settled...)
	})
}

// during lets a fault happen to a row.
func (l lane) during(w *row, e expectation, broken *link) *storm {
	inFlight := want{[]int{200, 503}, e.write.within} // what is under way when the fault comes may still be done
	writers := begin(w.t, w.User, sitetest.Soon, func(a *sitetest.Answer) { w.check(inFlight, a) })
	sitetest.Eventually(w.t, "something was written", func() bool { kept, _ := writers.acknowledged(); return kept >= stormers })
	over := time.NewTimer(e.lasts)
	planned := w.Ledger.Plan()
	heal := faultNamed(e.fault).strike(broken)
	beside(
		func() { w.ask(e.read, e.write) },
		func() {
			if e.down {
				w.notice(l.check)
			} else {
				w.healthy()
			}
		},
	)
	<-over.C
	if l.lives {
		w.wholeTurn()
	}
	heal()
	w.recover()
	planned()
	w.alive()
	writers.end()
	if !l.lives {
		w.wholeTurn()
	}
	return writers
}

// superuser is the address of a site's database for a test that looks past the service.
func superuser(t *testing.T, site *sitetest.Site) string {
	t.Helper()
	parsed, err := url.Parse(site.Owner)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User(embedded.Superuser)
	return parsed.String()
}
