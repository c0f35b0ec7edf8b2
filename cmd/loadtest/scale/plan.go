package scale

import (
	"math"
	"time"
)

// The machines and the reserve of a plan.
const (
	nodeCPUs     = 4
	postgresCPUs = 8
	// target is the share of the processors that may be busy: the rest is for the turns of a node that was lost, for bursts,
	// and for what the costs leave out (the ends of turns, titles, search, files, vacuum).
	target = 0.5
	// plannedTokens is the number of tokens that share an event on a busy node, and plannedRows the number of appends that
	// share a statement.
	plannedTokens = 1.98
	plannedRows   = 64
	leastNodes    = 2 // so that one may be lost
	liveDays      = 3 // that the log of live turns is kept, at most

	// ConnectionsPerNode is the number of connections of a node to Postgres: requests 16, engine 6, jobs 4, the readiness
	// probe and the listener for ended sessions.
	ConnectionsPerNode = 16 + 6 + 4 + 1 + 1
)

// appendsMeasured is the highest rate of appends that was measured (benchmarks, P5): on two processors, which the turns
// shared with Postgres.
const appendsMeasured = 53865

// Plan is what a number of live turns needs. Shards assumes that Postgres carries four times as much on eight processors as
// on two; ShardsMeasured, that it never carries more than what was measured.
type Plan struct {
	Turns, Nodes                 int
	Shards, ShardsMeasured       int
	NodeTurns, ShardTurns        int
	ShardConnections             int
	NodeMemory, ShardLog         float64 // bytes; bytes per second of the write-ahead log
	ShardLive, ShardKept         float64 // bytes: of the log of live turns; per day of replays and messages
	NodeUse, PostgresUse         float64
	P50, P99                     time.Duration
	EventsPerSecond, RowsPerStmt float64 // of a shard; simulated
}

// NodeLoad returns the processor time that a live turn takes on a node, per second.
func (c Costs) NodeLoad() float64 {
	return c.Rate*(c.TokenCPU.Seconds()+c.EventCPU.Seconds()/plannedTokens) + c.starts()*c.StartCPU.Seconds()
}

// PostgresLoad returns the processor time that a live turn takes in Postgres, per second.
func (c Costs) PostgresLoad() float64 {
	row := c.RowCPU.Seconds() + c.StatementCPU.Seconds()/plannedRows
	return c.Rate/plannedTokens*row + c.starts()*c.StartPostgresCPU.Seconds()
}

// starts returns how many turns are started per second for each live one.
func (c Costs) starts() float64 { return c.Rate / c.TurnTokens }

// NewPlan plans a number of live turns and simulates one shard of it for some seconds. Shards do not influence each other,
// because an account has all of its rows in one.
func NewPlan(turns int, costs Costs, seed uint64, warmUp, measured time.Duration) Plan {
	shards := atLeast(float64(turns)*costs.PostgresLoad()/(postgresCPUs*target), 1)
	perShard := atLeast(float64(turns)/float64(shards), 1)
	nodes := atLeast(float64(perShard)*costs.NodeLoad()/(nodeCPUs*target), 1)
	if shards == 1 {
		nodes = max(nodes, leastNodes)
	}
	r := Simulate(Site{Turns: perShard, Nodes: nodes, NodeCPUs: nodeCPUs, PostgresCPUs: postgresCPUs}, costs, seed, warmUp, measured)
	tokens, events := float64(r.Tokens)/measured.Seconds(), float64(r.Events)/measured.Seconds()
	day := (24 * time.Hour).Seconds()
	return Plan{
		Turns: turns, Nodes: nodes * shards, Shards: shards,
		ShardsMeasured: atLeast(float64(turns)*costs.Rate/plannedTokens/(appendsMeasured*target), 1), NodeTurns: atLeast(float64(perShard)/float64(nodes), 1), ShardTurns: perShard,
		ShardConnections: nodes * ConnectionsPerNode, NodeMemory: costs.NodeBytes + costs.TurnBytes*float64(perShard)/float64(nodes),
		ShardLog: events * costs.LogBytes, ShardLive: events * costs.LiveBytes * day * liveDays, ShardKept: tokens * costs.KeptBytes * day,
		NodeUse: r.NodeUse, PostgresUse: r.PostgresUse, P50: r.P50, P99: r.P99, EventsPerSecond: events, RowsPerStmt: r.RowsPerStatement(),
	}
}

func atLeast(v float64, least int) int { return max(least, int(math.Ceil(v))) }
