package journal_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/journal"
	"turnstone/persistence/nodes"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

const (
	benchTurns = 128
	// benchConns is the number of engine connections with which single appends are fastest on two cores.
	benchConns = 8
	benchChunk = 3 // events per append
	// benchRounds is the number of appends of each turn in a phase. All turns submit their first append at the same
	// moment; with this many rounds, that first round is a small part of the phase.
	benchRounds = 60
	// benchSegments is the number of segments of the write-ahead log that exist before the first append, as on a server
	// that has been through a checkpoint and recycles its old segments. A new server fills each segment with 16 MB of
	// zeros first, and every commit waits for that: 40 ms here.
	benchSegments = 12
)

// BenchmarkJournal stores the same fenced appends of 128 turns alternately through the journal and with one statement
// per append. Each turn waits for its append before it submits the next. It reports the throughput of both, their ratio,
// the journal's delays, and how much of the write-ahead log a grouped append needs.
func BenchmarkJournal(b *testing.B) {
	database := pgtest.NewDatabase(b)
	db, err := persistence.Open(b.Context(), persistence.Config{URL: database.URL, EngineConns: benchConns})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	w := &storetest.World{T: &testing.T{}, Database: database, DB: db, Node: protocol.NewNodeID(), Account: pgtest.Account(b, db)}
	w.Turns = db.StartTurns(turns.Options{})
	b.Cleanup(w.Turns.Close)
	w.Directory = nodes.NewDirectory(db.DB)
	if err := w.Directory.Register(b.Context(), ownership.NewNode{NodeID: w.Node}); err != nil {
		b.Fatal(err)
	}
	w.Runner = turnlog.Runner{NodeID: w.Node, MaxLiveTurns: benchTurns, Begin: storetest.BeginTurn}
	live := make([]*storetest.Turn, benchTurns)
	for i := range live {
		start := w.Request(nil, "hello")
		result, err := w.Turns.StartTurn(b.Context(), start, w.Runner)
		if err != nil {
			b.Fatal(err)
		}
		live[i] = w.Simulate(result.Spec, result.Begin)
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
	appends, logged := 0, int64(0)
	for b.Loop() {
		before := logPosition(b, database)
		took, waited := appendAll(b, live, benchRounds, func(a *turnlog.Append) error {
			result := make(chan error, 1)
			w.Turns.Append(a, func(err error) { result <- err })
			return <-result
		})
		grouped, delays = grouped+took, append(delays, waited...)
		logged += logPosition(b, database) - before
		took, _ = appendAll(b, live, benchRounds, func(a *turnlog.Append) error {
			return journal.AppendTogether(context.Background(), db.DB, a)
		})
		alone += took
		appends += benchRounds * len(live)
	}
	slices.Sort(delays)
	b.ReportMetric(float64(appends)/grouped.Seconds(), "grouped/s")
	b.ReportMetric(float64(appends)/alone.Seconds(), "alone/s")
	b.ReportMetric(alone.Seconds()/grouped.Seconds(), "ratio")
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(w.Turns.JournalStats().Appends.Load())/float64(w.Turns.JournalStats().Batches.Load()), "appends/statement")
	b.ReportMetric(float64(logged)/float64(appends), "WAL-B/append")
}

// logPosition returns the number of bytes that the server has written to its write-ahead log.
func logPosition(b *testing.B, database pgtest.Database) (position int64) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), database.AdminURL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close(b.Context()) }()
	if err := conn.QueryRow(b.Context(), `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint`).Scan(&position); err != nil {
		b.Fatal(err)
	}
	return position
}

// appendAll stores rounds appends of every turn, with one goroutine per turn and one append of a turn at a time. It
// returns the total time and the delay of each append.
func appendAll(b *testing.B, turns []*storetest.Turn, rounds int, store func(*turnlog.Append) error) (time.Duration, []time.Duration) {
	batches := make([][]*turnlog.Append, len(turns))
	for i, turn := range turns {
		for range rounds {
			a := turn.Chunk(benchChunk)
			turn.Next = a.Last + 1
			batches[i] = append(batches[i], a)
		}
	}
	delays := make([][]time.Duration, len(turns))
	var running sync.WaitGroup
	began := time.Now()
	for i := range turns {
		running.Go(func() {
			for _, a := range batches[i] {
				submitted := time.Now()
				if err := store(a); err != nil {
					b.Error(err)
					return
				}
				delays[i] = append(delays[i], time.Since(submitted))
			}
		})
	}
	running.Wait()
	return time.Since(began), slices.Concat(delays...)
}
