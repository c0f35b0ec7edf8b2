package scale

import "time"

// Costs are the measured costs of the path of a token. Benchmarks means docs/benchmarks.md at commit d1705458ebfb.
type Costs struct {
	Rate float64 // tokens per second of a live turn

	// TokenCPU and EventCPU are the processor time of a node for each token and for each event. A token took 41.4 µs with
	// 1.00 tokens per event and 22.5 µs with 1.98 (benchmarks, P1).
	TokenCPU, EventCPU time.Duration
	// StatementCPU and RowCPU are the processor time of Postgres for each statement of the journal and for each of its rows.
	// A statement took 84 µs with 2 rows and 267 µs with 16: 58 µs without its rows (benchmarks, "The journal and the
	// log"). With 1.98 tokens per event, an event took 16.8 µs in all (P2).
	StatementCPU, RowCPU time.Duration
	// Flush is the mean time of one write of the log to disk. It is fitted to P5: 53,865 appends per second, p50 1.9 ms.
	Flush time.Duration
	// LoadTokenCPU and LoadEventCPU are those of the model and the readers, where they run on the same processors. They are
	// not measured, but fitted: with them, 300 turns keep half of the two processors busy and 1,000 turns nearly all, and
	// more than 1,000 turns are too many, as in P8.
	LoadTokenCPU, LoadEventCPU time.Duration

	// StartCPU and StartPostgresCPU are the costs of starting a turn (benchmarks, P4).
	StartCPU, StartPostgresCPU time.Duration
	TurnTokens                 float64 // tokens of a turn, for the starts: the turns of P14

	NodeBytes float64 // memory of a node without turns (benchmarks, P10: after 10,000 turns)
	TurnBytes float64 // memory of a live turn with its reader (benchmarks, P6 on a slower machine)

	// LogBytes is the size of the write-ahead log for an append of one event: BenchmarkJournal of persistence/journal, with one
	// event per append, on two processors.
	LogBytes float64
	// LiveBytes are the bytes of the log of live turns for each event, which are dropped after two days; KeptBytes are those of
	// the replay and the message for each token (benchmarks, P14).
	LiveBytes, KeptBytes float64
}

// Measured are the costs of this version.
func Measured() Costs {
	return Costs{
		Rate:     30,
		TokenCPU: 3200 * time.Nanosecond, EventCPU: 38200 * time.Nanosecond,
		StatementCPU: 58 * time.Microsecond, RowCPU: 16500 * time.Nanosecond,
		Flush:        900 * time.Microsecond,
		LoadTokenCPU: 2 * time.Microsecond, LoadEventCPU: 48 * time.Microsecond,
		StartCPU: 585 * time.Microsecond, StartPostgresCPU: 300 * time.Microsecond, TurnTokens: 500,
		NodeBytes: 105e6, TurnBytes: 63.6e3,
		LogBytes: 605, LiveBytes: 299, KeptBytes: 19.2 + 5.93,
	}
}

// The pacing of turns and the limits of the journal, as in actors/turn/pace.go and persistence/journal.
const (
	paceGrid       = 10 * time.Millisecond
	paceFrom       = 500
	paceSpread     = 3000
	paceStep       = 12 * time.Microsecond
	paceSpreadMost = 40 * time.Millisecond
	paceMost       = 50 * time.Millisecond
	paceWindow     = 50 * time.Millisecond
	paceSlots      = int64(paceMost/paceGrid) + 2
	journalWait    = time.Millisecond
	journalBatch   = 512
	writers        = 2 // of the journal of a node
)
