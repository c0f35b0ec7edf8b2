package promises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"turnstone/cmd/loadtest/figures"
	"turnstone/cmd/loadtest/goals"
	"turnstone/cmd/loadtest/site"
	"turnstone/protocol/client"
)

const (
	nodes    = 3
	accounts = 4
	// leastEvents is the number of events without which a promised time does not count as measured.
	leastEvents = 50
	// within ends a wait for an event that does not happen. It is far above every promised time.
	within = 60 * time.Second
)

// promises are the goals, in the order of the table.
var promises = []string{
	goals.RedisLimit, goals.PostgresLimit, goals.ReadyLimit, goals.RecoveryLimit, goals.TakeoverLimit, goals.DrainLimit, goals.CancelLimit, goals.ResponseLimit,
}

// run is one run of the measurements.
type run struct {
	site    *site.Site
	cluster *site.Cluster
	quick   bool
	via     [][]*client.Client // by account and node
	events  map[string]*events // by goal
	causes  []string           // in the order in which they occurred
}

// events are the times of one goal in milliseconds.
type events struct {
	all     figures.Samples
	byCause map[string]figures.Samples
	idle    figures.Samples // the same without a fault
}

func newRun(s *site.Site, quick bool) *run {
	r := &run{site: s, quick: quick, events: map[string]*events{}}
	for _, id := range promises {
		r.events[id] = &events{byCause: map[string]figures.Samples{}}
	}
	return r
}

// Measure runs the site as a cluster, measures every promised time, and adds the results to the report. A quick run has
// few events of each kind.
func Measure(ctx context.Context, s *site.Site, quick bool, report *goals.Report) (err error) {
	r := newRun(s, quick)
	users, err := s.EnsureAccounts(ctx, accounts)
	if err != nil {
		return err
	}
	cluster, err := s.StartCluster(ctx, nodes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.End(context.WithoutCancel(ctx))) }()
	for _, user := range users {
		var via []*client.Client
		for _, node := range cluster.Nodes {
			api, err := user.At("http://"+node.Public, 0)
			if err != nil {
				return err
			}
			via = append(via, api)
		}
		r.via = append(r.via, via)
	}
	r.cluster = cluster
	for _, part := range []func(context.Context) error{r.responses, r.outages, r.departures, r.cancels} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return r.publish(report)
}

// pick returns the number for the kind of run.
func (r *run) pick(full, quick int) int {
	if r.quick {
		return quick
	}
	return full
}

// add adds an event.
func (r *run) add(id, cause string, took time.Duration) {
	e := r.events[id]
	e.all, e.byCause[cause] = append(e.all, float64(took.Microseconds())/1000), append(e.byCause[cause], float64(took.Microseconds())/1000)
	if !slices.Contains(r.causes, cause) {
		r.causes = append(r.causes, cause)
	}
}

// addIdle adds a time of the baseline.
func (r *run) addIdle(id string, took time.Duration) {
	r.events[id].idle = append(r.events[id].idle, float64(took.Microseconds())/1000)
}

// publish adds the figures to the report. Every event must keep its promise, except that the pause of a takeover is
// promised at the 99th percentile.
func (r *run) publish(report *goals.Report) error {
	table := figures.NewTable("promise", "cause", "events", "shortest ms", "p50", "p99", "longest")
	var few []error
	for _, id := range promises {
		e := r.events[id]
		score := e.all.Max()
		if id == goals.TakeoverLimit {
			score = e.all.Quantile(0.99)
		}
		report.Add(goals.Figure{
			Goal: id, Ours: e.all, Baseline: e.idle, Unit: "ms", Score: figures.Samples{score}, Note: fmt.Sprintf("%d events", len(e.all)),
		})
		for _, cause := range r.causes {
			if s := e.byCause[cause]; len(s) > 0 {
				table.Add(id, cause, len(s), s.Quantile(0), s.Median(), s.Quantile(0.99), s.Max())
			}
		}
		if len(e.all) < r.pick(leastEvents, 1) {
			few = append(few, fmt.Errorf("%s: %d events", id, len(e.all)))
		}
	}
	report.Detail("limits", fmt.Sprintf("a cluster of %d nodes", nodes), table)
	return errors.Join(few...)
}
