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

// What cells allow. 200 represents every status of success.
var (
	works   = want{200}
	refuses = want{503}
	mixed   = want{200, 503} // either, if it matches what is stored
)

// expectation is a row of the table: what readers and writers get during a fault. down means that /ready reports the
// link's check as down; without it, the link may be impaired but is not down.
type expectation struct {
	fault       string
	read, write want
	down        bool
	lasts       time.Duration // minimum duration of the fault
}

// Everything durable needs Postgres: without it nothing is confirmed. A live turn stops at the last event that it could
// store and continues afterwards.
var postgresTable = []expectation{
	{fault: "down", read: refuses, write: refuses, down: true},
	{fault: "refused", read: refuses, write: refuses, down: true},
	{fault: "slow", read: refuses, write: refuses, down: true},
	{fault: "reset", read: refuses, write: refuses, down: true},
	{fault: "half-open", read: refuses, write: refuses, down: true},
	{fault: "flapping", read: mixed, write: mixed, lasts: 4 * flapEvery},
	{fault: "bandwidth", read: mixed, write: mixed},
	{fault: "garbage", read: refuses, write: refuses, down: true},
}

// Redis is used only for rate limits. Requests that change something are refused at once while the limiter cannot
// decide; reads and live turns are not affected.
var redisTable = []expectation{
	{fault: "down", read: works, write: refuses, down: true},
	{fault: "refused", read: works, write: refuses, down: true},
	{fault: "slow", read: works, write: refuses, down: true},
	{fault: "reset", read: works, write: refuses, down: true},
	{fault: "half-open", read: works, write: refuses, down: true},
	{fault: "flapping", read: works, write: mixed, lasts: 4 * flapEvery},
	{fault: "bandwidth", read: works, write: mixed},
	{fault: "garbage", read: works, write: refuses, down: true},
}

// lane is a separate site and the rows that run on it, one after the other.
type lane struct {
	name  string
	check string // of /ready
	rows  []expectation
	// via puts a proxy between the site and the dependency.
	via func(t *testing.T, site *sitetest.Site) *link
	// turnNeedsNoLink means that the live turn does not need the link, so it ends while the fault lasts.
	turnNeedsNoLink bool
}

func TestEveryFaultOfEveryLinkKeepsThePromises(t *testing.T) {
	t.Parallel()
	lanes := []lane{
		{name: "postgres", check: "persistence", via: viaPostgres, rows: postgresTable[:3]},
		{name: "postgres", check: "persistence", via: viaPostgres, rows: postgresTable[3:6]},
		{name: "postgres", check: "persistence", via: viaPostgres, rows: postgresTable[6:]},
		{name: "redis", check: "cache", via: viaRedis, rows: redisTable, turnNeedsNoLink: true},
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
	l := newLink(t, sitetest.PostgresSocket(t, server.DSN("nobody", "none")))
	site.Environment = append(site.Environment, "DATABASE_URL="+sitetest.OverTCP(t, site.Login, l.Address))
	return l
}

// viaRedis puts the limiter behind a proxy.
func viaRedis(t *testing.T, site *sitetest.Site) *link {
	t.Helper()
	l := newLink(t, embeddedtest.Redis(t).URL()[len("unix://"):])
	site.Environment = append(site.Environment, "REDIS_URL=redis://"+l.Address+"/0")
	return l
}

// run runs the rows, then checks their writes. A key whose first request was interrupted is free only after a while, so
// the checks of all rows wait at the same time.
func (l lane) run(t *testing.T, r *report) {
	t.Run(l.name, func(t *testing.T) {
		site := sitetest.NewSite(t)
		broken := l.via(t, site)
		site.Start()
		var writeChecks []func()
		for _, e := range l.rows {
			t.Run(e.fault, func(inner *testing.T) {
				w := newRow(inner, site, r, l.name, e.fault)
				writers := l.during(w, e, broken)
				writeChecks = append(writeChecks, func() {
					w.t = t
					w.checkWrites()
					writers.checkStored(t, w, superuser(t, site))
				})
			})
		}
		runConcurrently(writeChecks...)
	})
}

// during injects a fault into a row.
func (l lane) during(w *row, e expectation, broken *link) *storm {
	// A request in flight when the fault starts may still succeed.
	writers := startWriters(w.t, w.User, sitetest.HangGuard, func(a *sitetest.Response) { w.check(mixed, a) })
	sitetest.Eventually(w.t, "something was written", func() bool { n, _ := writers.acknowledged(); return n >= stormWriters })
	over := time.NewTimer(e.lasts)
	planned := w.Ledger.Plan()
	repair := faultNamed(e.fault).inject(broken)
	runConcurrently(
		func() { w.sendAll(e.read, e.write) },
		func() {
			if e.down {
				w.awaitDown(l.check)
			} else {
				w.healthy()
			}
		},
	)
	<-over.C
	if l.turnNeedsNoLink {
		w.wholeTurn()
	}
	repair()
	w.recover()
	planned()
	w.wantNoRefusals()
	writers.end()
	if !l.turnNeedsNoLink {
		w.wholeTurn()
	}
	return writers
}

// superuser returns the URL of a site's database for the superuser, for checks that bypass the service.
func superuser(t *testing.T, site *sitetest.Site) string {
	t.Helper()
	parsed, err := url.Parse(site.Owner)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User(embedded.Superuser)
	return parsed.String()
}
