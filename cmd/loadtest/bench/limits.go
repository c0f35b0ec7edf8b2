package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/protocol/client"
)

// The goals of the times that the service promises.
const (
	redisLimit    = "limits Redis"
	postgresLimit = "limits Postgres"
	readyLimit    = "limits ready"
	recoveryLimit = "limits recovery"
	takeoverLimit = "limits takeover"
	drainLimit    = "limits drain"
	cancelLimit   = "limits cancel"
)

const (
	limitNodes    = 3
	limitAccounts = 4
	// leastEvents is the number of events without which a promised time does not count as measured.
	leastEvents = 50
	// limitWithin ends a wait for an event that does not happen. It is far above every promised time.
	limitWithin = 60 * time.Second
)

// limitBench measures the times that the service promises, on a cluster of three nodes: each from the fault until the
// event that the promise is about.
type limitBench struct {
	*bench
	via    [][]*client.Client // by account and node
	events map[string]*limitEvents
	causes []string // in the order in which they occurred
}

// limitEvents are the times of one goal in milliseconds.
type limitEvents struct {
	all     figures.Samples
	byCause map[string]figures.Samples
	idle    figures.Samples // the same without a fault
}

// limits measures "limits".
func (b *limitBench) limits(ctx context.Context) (err error) {
	accounts, err := b.site.EnsureAccounts(ctx, limitAccounts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.site.EndCluster(context.WithoutCancel(ctx))) }()
	if err := b.site.StartCluster(ctx, limitNodes); err != nil {
		return err
	}
	for _, account := range accounts {
		var via []*client.Client
		for _, node := range b.site.Nodes {
			api, err := account.At("http://"+node.Public, 0)
			if err != nil {
				return err
			}
			via = append(via, api)
		}
		b.via = append(b.via, via)
	}
	b.events = map[string]*limitEvents{}
	for _, id := range []string{redisLimit, postgresLimit, readyLimit, recoveryLimit, takeoverLimit, drainLimit, cancelLimit} {
		b.events[id] = &limitEvents{byCause: map[string]figures.Samples{}}
	}
	for _, part := range []func(context.Context) error{b.outages, b.departures, b.cancels} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return b.publish()
}

// add adds an event.
func (b *limitBench) add(id, cause string, took time.Duration) {
	e := b.events[id]
	e.all, e.byCause[cause] = append(e.all, millis(took)), append(e.byCause[cause], millis(took))
	if !slices.Contains(b.causes, cause) {
		b.causes = append(b.causes, cause)
	}
}

// addIdle adds a time of the baseline.
func (b *limitBench) addIdle(id string, took time.Duration) {
	b.events[id].idle = append(b.events[id].idle, millis(took))
}

// publish adds the figures to the report. Every event must keep its promise, except that the pause of a takeover is
// promised at the 99th percentile.
func (b *limitBench) publish() error {
	table := figures.NewTable("promise", "cause", "events", "shortest ms", "p50", "p99", "longest")
	var short []error
	for _, g := range goals {
		e := b.events[g.id]
		if e == nil {
			continue
		}
		score := e.all.Max()
		if g.id == takeoverLimit {
			score = e.all.Quantile(0.99)
		}
		b.report.add(figure{
			Goal: g.id, Ours: e.all, Baseline: e.idle, Unit: "ms", Score: figures.Samples{score}, Note: fmt.Sprintf("%d events", len(e.all)),
		})
		for _, cause := range b.causes {
			if s := e.byCause[cause]; len(s) > 0 {
				table.Add(g.id, cause, len(s), s.Quantile(0), s.Median(), s.Quantile(0.99), s.Max())
			}
		}
		if len(e.all) < b.pickCount(leastEvents, 1) {
			short = append(short, fmt.Errorf("%s: %d events", g.id, len(e.all)))
		}
	}
	b.report.detail("limits", fmt.Sprintf("a cluster of %d nodes", limitNodes), table)
	return errors.Join(short...)
}
