package scale

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"time"

	"turnstone/cmd/loadtest/console"
	"turnstone/cmd/loadtest/figures"
)

const (
	// simulated and warmUp are simulated times. A turn has 90 tokens in the first; the second is some hundred times as long
	// as the delay of a token.
	simulated = 3 * time.Second
	warmUp    = 2 * time.Second
	// The generated part of the page.
	began = "<!-- Written by loadtest scale. -->\n"
	ended = "<!-- End of what loadtest scale has written. -->\n"
)

var sizes = []int{1_000, 10_000, 100_000, 1_000_000}

// point is a measurement that the simulation is compared with: docs/benchmarks.md, P1 (median of five rounds) and P8 (median
// of the windows with this number of turns).
type point struct {
	turns          int
	tokensPerEvent float64
	p50, p99       float64 // ms
}

var points = []point{
	{250, 1.00, 12.9, 47.4},
	{300, 1.00, 11.7, 33.6},
	{500, 1.43, 20.9, 95.5},
	{750, 1.85, 42.9, 144},
	{1000, 1.98, 40.6, 82.6},
	{1250, math.NaN(), math.NaN(), 231}, // the middle of 165–298 ms at commit 3256224
}

// appendP50 and appendP99 are the delays of P5, in ms.
const (
	appendP50   = 1.91
	appendP99   = 7.27
	appendTurns = 128
)

// Command writes the plan of several sizes into a page.
type Command struct {
	Seed uint64 `default:"1" help:"Seed of the simulation. The same seed gives the same page."`
	Out  string `default:"docs/scaling.md" help:"Page whose generated part is replaced."`
}

// Run simulates, and replaces the generated part of the page.
func (c Command) Run(p *console.Console) error {
	page, err := os.ReadFile(c.Out)
	if err != nil {
		return err
	}
	p.Say("simulating %d sizes and %d measurements", len(sizes), len(points)+1)
	page, err = replaceGenerated(page, Generated(Measured(), c.Seed))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Out, err)
	}
	return os.WriteFile(c.Out, page, 0o644) //nolint:gosec // a page of the documentation
}

// replaceGenerated replaces what is between the two marks.
func replaceGenerated(page []byte, text string) ([]byte, error) {
	before, rest, found := bytes.Cut(page, []byte(began))
	_, after, closed := bytes.Cut(rest, []byte(ended))
	if !found || !closed {
		return nil, fmt.Errorf("has no %q … %q", began, ended)
	}
	return bytes.Join([][]byte{before, []byte(began), []byte(text), []byte(ended), after}, nil), nil
}

// Generated returns the generated part of the page.
func Generated(costs Costs, seed uint64) string {
	return "\n### What a size needs\n\n" + planTable(costs, seed) + "\n### The simulation compared with the measurements\n\n" + comparison(costs, seed) + "\n"
}

func planTable(costs Costs, seed uint64) string {
	machines := figures.NewTable("live turns", "nodes", "Postgres shards", "the same, at the measured rate of appends", "turns per node", "processors busy: node, Postgres", "token delay p50, p99 ms (simulated)", "memory per node")
	stores := figures.NewTable("live turns", "turns per shard", "connections per shard", "events/s per shard", "appends per statement", "write-ahead log per shard", "log of live turns per shard, 3 days", "kept per shard and day", "kept per day, all")
	for _, turns := range sizes {
		p := NewPlan(turns, costs, seed, warmUp, simulated)
		machines.Add(p.Turns, p.Nodes, p.Shards, p.ShardsMeasured, p.NodeTurns, fmt.Sprintf("%.0f %%, %.0f %%", p.NodeUse*100, p.PostgresUse*100), ms(p.P50)+", "+ms(p.P99), bytesOf(p.NodeMemory))
		stores.Add(p.Turns, p.ShardTurns, p.ShardConnections, p.EventsPerSecond, p.RowsPerStmt, bytesOf(p.ShardLog)+"/s", bytesOf(p.ShardLive), bytesOf(p.ShardKept), bytesOf(p.ShardKept*float64(p.Shards)))
	}
	return machines.Markdown() + "\n" + stores.Markdown()
}

func comparison(costs Costs, seed uint64) string {
	tokens := figures.NewTable("live turns on two processors that run everything", "tokens per event: measured, simulated", "delay p50 ms: measured, simulated", "error", "p99 ms: measured, simulated", "error", "processors busy (simulated)")
	for _, m := range points {
		r := Simulate(Site{Turns: m.turns, Nodes: 1, NodeCPUs: 2, Shared: true}, costs, seed, warmUp, simulated)
		tokens.Add(m.turns, figures.Number(m.tokensPerEvent)+", "+figures.Number(r.TokensPerEvent()), figures.Number(m.p50)+", "+ms(r.P50), errorOf(inMs(r.P50), m.p50),
			figures.Number(m.p99)+", "+ms(r.P99), errorOf(inMs(r.P99), m.p99), fmt.Sprintf("%.0f %%", r.NodeUse*100))
	}
	r := Simulate(Site{Turns: appendTurns, Nodes: 1, NodeCPUs: 2, Shared: true, Closed: true}, costs, seed, warmUp, simulated)
	appends := float64(r.Events) / simulated.Seconds()
	journal := figures.NewTable("128 turns that wait for their appends (P5)", "measured", "simulated", "error")
	journal.Add("appends/s", float64(appendsMeasured), appends, errorOf(appends, appendsMeasured))
	journal.Add("p50 ms", appendP50, inMs(r.P50), errorOf(inMs(r.P50), appendP50))
	journal.Add("p99 ms", appendP99, inMs(r.P99), errorOf(inMs(r.P99), appendP99))
	return tokens.Markdown() + "\n" + journal.Markdown()
}

func inMs(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ms(d time.Duration) string { return figures.Number(inMs(d)) }

// errorOf returns the error of the simulation; "–" if nothing was measured.
func errorOf(simulated, measured float64) string {
	if math.IsNaN(measured) {
		return "–"
	}
	return fmt.Sprintf("%+.0f %%", (simulated/measured-1)*100)
}

// bytesOf formats a number of bytes.
func bytesOf(v float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	at := 0
	for v >= 1000 && at < len(units)-1 {
		v /= 1000
		at++
	}
	return figures.Number(v) + " " + units[at]
}
