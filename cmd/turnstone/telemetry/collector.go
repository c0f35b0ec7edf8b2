package telemetry

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"turnstone/actors/turn"
	"turnstone/persistence/journal"
	"turnstone/persistence/pg"
)

// Sources are the functions that /metrics reads. None of them is nil. Readiness contacts the dependencies, at most once a
// second.
type Sources struct {
	Turns     func() turn.Stats
	Renewed   func() *time.Time // start of the last successful renewal of the lease; nil: none yet
	Draining  func() bool
	Pools     func() []pg.PoolStats
	Journal   func() *journal.Stats
	Streams   func() int
	Readiness func(context.Context) map[string]bool // by check: whether the dependency works
	Disk      func() Disk
}

// Disk describes the disk of the data folder.
type Disk struct {
	Free, Size uint64 // bytes
	Full       bool
}

// Collect registers the metrics that are read from sources.
func (m *Metrics) Collect(sources Sources) error { return register(m.registry, collector{sources}) }

// collector reads the sources when /metrics is requested.
type collector struct{ Sources }

// series is a metric without labels.
type series struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*reading) float64
}

// reading holds the values of one collection.
type reading struct {
	turns    turn.Stats
	journal  *journal.Stats
	disk     Disk
	leaseAge time.Duration
	draining bool
	streams  int
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var allSeries = []series{
	{describe("turns_live", "Live turns on this node."), gauge, func(r *reading) float64 { return float64(r.turns.Live) }},
	{describe("turns_capacity", "Live turns up to which this node accepts new ones; 0: no limit."), gauge, func(r *reading) float64 { return float64(r.turns.Capacity) }},
	{describe("turns_started_total", "Turns started on this node."), counter, func(r *reading) float64 { return float64(r.turns.Started) }},
	{describe("turns_finished_total", "Turns ended on this node."), counter, func(r *reading) float64 { return float64(r.turns.Finished) }},
	{describe("turns_refused_total", "Starts refused because the node had no capacity."), counter, func(r *reading) float64 { return float64(r.turns.Refused) }},
	{describe("turns_adopted_total", "Turns taken over from other nodes, or from failed actors of this one."), counter, func(r *reading) float64 { return float64(r.turns.Adopted) }},
	{describe("turns_broken_total", "Turns whose actor failed."), counter, func(r *reading) float64 { return float64(r.turns.Broken) }},
	{describe("relays", "Turns of other nodes that readers of this node follow."), gauge, func(r *reading) float64 { return float64(r.turns.Relays) }},
	{describe("feeds", "Turns of this node that other nodes follow; each node counts."), gauge, func(r *reading) float64 { return float64(r.turns.Sources) }},
	{describe("node_lease_age_seconds", "Time since the last successful renewal of the node's lease."), gauge, func(r *reading) float64 { return r.leaseAge.Seconds() }},
	{describe("node_draining", "1 while the node drains and accepts no new turns."), gauge, func(r *reading) float64 { return number(r.draining) }},
	{describe("http_streams_open", "Open streams."), gauge, func(r *reading) float64 { return float64(r.streams) }},
	{describe("journal_appends_total", "Appends that were stored."), counter, func(r *reading) float64 { return float64(r.journal.Appends.Load()) }},
	{describe("journal_bytes_total", "Bytes of events that were stored."), counter, func(r *reading) float64 { return float64(r.journal.Bytes.Load()) }},
	{describe("journal_retries_total", "Statements repeated after a database error."), counter, func(r *reading) float64 { return float64(r.journal.Retries.Load()) }},
	{describe("journal_recovered_total", "Appends whose reply was lost and that were then found stored."), counter, func(r *reading) float64 { return float64(r.journal.Recovered.Load()) }},
	{describe("journal_fenced_total", "Appends refused because another node owns the turn."), counter, func(r *reading) float64 { return float64(r.journal.Fenced.Load()) }},
	{describe("journal_refused_total", "Appends that cannot be stored and were given up."), counter, func(r *reading) float64 { return float64(r.journal.Refused.Load()) }},
	{describe("journal_waiting", "Appends submitted and not yet confirmed."), gauge, func(r *reading) float64 { return float64(r.journal.Waiting.Load()) }},
	{describe("disk_free_bytes", "Free bytes on the disk of the data folder."), gauge, func(r *reading) float64 { return float64(r.disk.Free) }},
	{describe("disk_size_bytes", "Size of the disk of the data folder."), gauge, func(r *reading) float64 { return float64(r.disk.Size) }},
	{
		describe("disk_full", "1 while the disk of the data folder is nearly full: no turns start or no files are accepted, if they are stored there."), gauge,
		func(r *reading) float64 { return number(r.disk.Full) },
	},
}

var (
	poolSize    = describe("database_connections", "Connections of a pool, by state.", "pool", "state")
	poolMax     = describe("database_connections_max", "Largest number of connections of a pool.", "pool")
	poolWaiting = describe("database_waits_total", "Requests that had to wait for a connection.", "pool")
	poolWaited  = describe("database_wait_seconds_total", "Time that requests have waited for a connection.", "pool")
	dependency  = describe("dependency_up", "1 if a dependency works, by the checks of /ready.", "dependency")
)

// Describe implements prometheus.Collector.
func (collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, one := range allSeries {
		descriptions <- one.desc
	}
	for _, one := range []*prometheus.Desc{poolSize, poolMax, poolWaiting, poolWaited, dependency} {
		descriptions <- one
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	values := &reading{
		turns: c.Turns(), journal: c.Journal(), disk: c.Disk(), leaseAge: leaseAge(c.Renewed()), draining: c.Draining(), streams: c.Streams(),
	}
	for _, one := range allSeries {
		metrics <- prometheus.MustNewConstMetric(one.desc, one.kind, one.value(values))
	}
	for _, pool := range c.Pools() {
		metrics <- prometheus.MustNewConstMetric(poolSize, gauge, float64(pool.Idle), pool.Name, "idle")
		metrics <- prometheus.MustNewConstMetric(poolSize, gauge, float64(pool.InUse), pool.Name, "used")
		metrics <- prometheus.MustNewConstMetric(poolMax, gauge, float64(pool.Max), pool.Name)
		metrics <- prometheus.MustNewConstMetric(poolWaiting, counter, float64(pool.Waited), pool.Name)
		metrics <- prometheus.MustNewConstMetric(poolWaited, counter, pool.WaitTime.Seconds(), pool.Name)
	}
	checks := c.Readiness(context.Background())
	for _, name := range slices.Sorted(maps.Keys(checks)) {
		metrics <- prometheus.MustNewConstMetric(dependency, gauge, number(checks[name]), name)
	}
}

// leaseAge returns the time since a renewal; 0 before the first one.
func leaseAge(renewed *time.Time) time.Duration {
	if renewed == nil {
		return 0
	}
	return time.Since(*renewed)
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
