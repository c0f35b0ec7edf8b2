package persistence_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

const (
	benchTurns = 128
	// benchConns is where appends one by one are fastest on two cores.
	benchConns = 8
	benchChunk = 3 // events an append
	// benchRounds of each turn make a phase in which the first round, for which all turns come at once, is a small part:
	// it was one append of twenty.
	benchRounds = 60
	// benchSegments of the write-ahead log are there before the first append, as in a server that has been through a
	// checkpoint and writes its old segments anew. A young server fills each segment with 16 MB of zeros first, and every
	// commit waits for that: 40 ms here.
	benchSegments = 12
)

// BenchmarkJournal runs the same fenced appends of 128 waiting turns through the journal and one by one, in turn, and
// prints their ratio beside the journal's delays.
func BenchmarkJournal(b *testing.B) {
	database := pgtest.NewDatabase(b)
	db, err := persistence.Open(b.Context(), persistence.Config{URL: database.URL, EngineConns: benchConns})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	w := &world{T: &testing.T{}, database: database, db: db, node: protocol.NewNodeID(), account: pgtest.Account(b, db)}
	w.turns = persistence.NewTurns(db, persistence.TurnsOptions{})
	b.Cleanup(w.turns.Close)
	w.directory = persistence.NewDirectory(db, persistence.DirectoryOptions{})
	if err := w.directory.Register(b.Context(), w.node, "", nil); err != nil {
		b.Fatal(err)
	}
	turns := make([]*actedTurn, benchTurns)
	for i := range turns {
		start := w.request(nil, "hello")
		start.MaxLiveTurns = benchTurns
		result, err := w.turns.StartTurn(b.Context(), start)
		if err != nil {
			b.Fatal(err)
		}
		turns[i] = w.alive(result.Spec, result.Begin)
	}
	database.Admin(b, `analyze`)
	database.Admin(b, `create table written (n int)`)
	for n := range benchSegments {
		database.Admin(b, `insert into written values ($1)`, n)
		database.Admin(b, `select pg_switch_wal()`)
	}
	database.Admin(b, `checkpoint`)
	var grouped, alone time.Duration
	var delays []time.Duration
	appends := 0
	for b.Loop() {
		took, waited := appendAll(b, turns, benchRounds, func(a *protocol.TurnAppend) error {
			answer := make(chan error, 1)
			w.turns.Append(a, func(err error) { answer <- err })
			return <-answer
		})
		grouped, delays = grouped+took, append(delays, waited...)
		took, _ = appendAll(b, turns, benchRounds, func(a *protocol.TurnAppend) error {
			return db.AppendAlone(context.Background(), a)
		})
		alone += took
		appends += benchRounds * len(turns)
	}
	slices.Sort(delays)
	b.ReportMetric(float64(appends)/grouped.Seconds(), "grouped/s")
	b.ReportMetric(float64(appends)/alone.Seconds(), "alone/s")
	b.ReportMetric(alone.Seconds()/grouped.Seconds(), "ratio")
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(w.turns.JournalStats().Appends.Load())/float64(w.turns.JournalStats().Batches.Load()), "appends/statement")
}

// appendAll lets every turn append in its own goroutine, one after the other.
func appendAll(b *testing.B, turns []*actedTurn, rounds int, store func(*protocol.TurnAppend) error) (time.Duration, []time.Duration) {
	batches := make([][]*protocol.TurnAppend, len(turns))
	for i, turn := range turns {
		for range rounds {
			a := turn.chunk(benchChunk)
			turn.next = a.Last + 1
			batches[i] = append(batches[i], a)
		}
	}
	delays := make([][]time.Duration, len(turns))
	var running sync.WaitGroup
	began := time.Now()
	for i := range turns {
		running.Go(func() {
			for _, a := range batches[i] {
				handed := time.Now()
				if err := store(a); err != nil {
					b.Error(err)
					return
				}
				delays[i] = append(delays[i], time.Since(handed))
			}
		})
	}
	running.Wait()
	return time.Since(began), slices.Concat(delays...)
}
