package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"turnstone/actors"
	"turnstone/persistence/journal"
	"turnstone/persistence/pg"
)

// metricsCollector collects the counters of other packages when /metrics is requested. Its labels are the names and
// states of connection pools; nothing that clients send becomes a label.
type metricsCollector struct {
	node    func() actors.Stats
	pools   func() []pg.PoolStats
	journal func() *journal.Stats
}

// series is a metric without labels.
type series struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*reading) float64
}

// reading holds the values of one collection.
type reading struct {
	node    actors.Stats
	journal *journal.Stats
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("turnstone_"+name, help, labels, nil)
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

var allSeries = []series{
	{describe("turns_live", "Live turns on this node."), gauge, func(r *reading) float64 { return float64(r.node.Live) }},
	{describe("turns_started_total", "Turns started on this node."), counter, func(r *reading) float64 { return float64(r.node.Started) }},
	{describe("turns_finished_total", "Turns ended on this node."), counter, func(r *reading) float64 { return float64(r.node.Finished) }},
	{describe("turns_adopted_total", "Turns taken over from other nodes."), counter, func(r *reading) float64 { return float64(r.node.Adopted) }},
	{describe("turns_broken_total", "Turns whose actor failed."), counter, func(r *reading) float64 { return float64(r.node.Broken) }},
	{describe("model_calls_total", "Model calls."), counter, func(r *reading) float64 { return float64(r.node.ModelCalls) }},
	{describe("model_failures_total", "Model calls that failed."), counter, func(r *reading) float64 { return float64(r.node.ModelFailures) }},
	{describe("journal_appends_total", "Appends that were stored."), counter, func(r *reading) float64 { return float64(r.journal.Appends.Load()) }},
	{describe("journal_batches_total", "Statements that stored appends."), counter, func(r *reading) float64 { return float64(r.journal.Batches.Load()) }},
	{describe("journal_bytes_total", "Bytes of events that were stored."), counter, func(r *reading) float64 { return float64(r.journal.Bytes.Load()) }},
	{describe("journal_retries_total", "Statements repeated after a database error."), counter, func(r *reading) float64 { return float64(r.journal.Retries.Load()) }},
	{describe("journal_recovered_total", "Appends whose reply was lost and that were then found stored."), counter, func(r *reading) float64 { return float64(r.journal.Recovered.Load()) }},
	{describe("journal_fenced_total", "Appends refused because another node owns the turn."), counter, func(r *reading) float64 { return float64(r.journal.Fenced.Load()) }},
	{describe("journal_waiting", "Appends submitted and not yet confirmed."), gauge, func(r *reading) float64 { return float64(r.journal.Waiting.Load()) }},
}

var (
	diskFree    = describe("disk_free_bytes", "Free bytes on the disk of the private Postgres.")
	diskFull    = describe("disk_full", "1 while the disk of the private Postgres is nearly full and no turns start.")
	poolSize    = describe("database_connections", "Connections of a pool, by state.", "pool", "state")
	poolWaiting = describe("database_waits_total", "Requests that had to wait for a connection.", "pool")
)

// Describe implements prometheus.Collector.
func (g metricsCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, one := range allSeries {
		descriptions <- one.desc
	}
	descriptions <- poolSize
	descriptions <- poolWaiting
}

// Collect implements prometheus.Collector.
func (g metricsCollector) Collect(metrics chan<- prometheus.Metric) {
	values := &reading{node: g.node(), journal: g.journal()}
	for _, one := range allSeries {
		metrics <- prometheus.MustNewConstMetric(one.desc, one.kind, one.value(values))
	}
	for _, pool := range g.pools() {
		metrics <- prometheus.MustNewConstMetric(poolSize, gauge, float64(pool.Idle), pool.Name, "idle")
		metrics <- prometheus.MustNewConstMetric(poolSize, gauge, float64(pool.InUse), pool.Name, "used")
		metrics <- prometheus.MustNewConstMetric(poolWaiting, counter, float64(pool.Waited), pool.Name)
	}
}
