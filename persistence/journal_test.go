package persistence_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

func TestAppendIsFencedByOwnerEpochAndSequence(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	turn.append(2)
	for name, change := range map[string]func(*protocol.TurnAppend){
		"another owner":      func(a *protocol.TurnAppend) { a.Owner = protocol.NewNodeID() },
		"an old epoch":       func(a *protocol.TurnAppend) { a.Epoch-- },
		"a new epoch":        func(a *protocol.TurnAppend) { a.Epoch++ },
		"a gap":              func(a *protocol.TurnAppend) { a.First++; a.Last++ },
		"another account":    func(a *protocol.TurnAppend) { a.AccountID = protocol.NewAccountID() },
		"an unknown turn":    func(a *protocol.TurnAppend) { a.TurnID = protocol.NewTurnID() },
		"half of what stood": func(a *protocol.TurnAppend) { a.First-- },
	} {
		a := turn.chunk(1)
		change(a)
		if err := w.append(a); !errors.Is(err, protocol.ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	turn.append(1)
	if got := turn.read(0, 1<<20); !bytes.Equal(got, turn.frames) {
		t.Errorf("the log holds\n%s\nwant\n%s", got, turn.frames)
	}
	turn.end(nil)
	if err := w.append(turn.chunk(1)); !errors.Is(err, protocol.ErrFenced) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAppendsOfOneTurnKeepTheirOrder(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	const appends = 50
	var answers sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for range appends {
		a := turn.chunk(1)
		turn.stored(a)
		answers.Add(1)
		w.turns.Append(a, func(err error) {
			mu.Lock()
			failed = append(failed, err)
			mu.Unlock()
			answers.Done()
		})
	}
	answers.Wait()
	w.must(errors.Join(failed...))
	if got := turn.read(0, 1<<20); !bytes.Equal(got, turn.frames) {
		t.Error("the log holds something else")
	}
}

func TestManyTurnsShareAStatement(t *testing.T) {
	w := newWorld(t)
	turns := make([]*actedTurn, 100)
	for i := range turns {
		start := w.request(nil, "hello")
		start.MaxLiveTurns = len(turns)
		turns[i] = w.start(start)
	}
	var answers sync.WaitGroup
	failures := make(chan error, len(turns))
	for _, turn := range turns {
		a := turn.chunk(3)
		a.Records = []protocol.TurnRecord{{Kind: protocol.RecordStep, Key: "1", Sequence: a.First, Body: []byte(`{"a": 1}`)}}
		answers.Add(1)
		w.turns.Append(a, func(err error) { failures <- err; answers.Done() })
		turn.stored(a)
	}
	answers.Wait()
	for range turns {
		w.must(<-failures)
	}
	stats := w.turns.JournalStats()
	if batches := stats.Batches.Load(); stats.Appends.Load() != int64(len(turns)) || batches >= int64(len(turns)) {
		t.Errorf("%d appends in %d statements", stats.Appends.Load(), batches)
	}
	for _, turn := range turns {
		if got := turn.read(0, 1<<20); !bytes.Equal(got, turn.frames) {
			t.Fatal("a log holds something else")
		}
		record, err := w.turns.TurnRecord(t.Context(), w.account, turn.spec.TurnID, protocol.RecordStep, "1")
		if err != nil || record == nil || string(record.Body) != `{"a": 1}` || record.Sequence != 2 {
			t.Fatalf("the record is %+v (%v)", record, err)
		}
	}
}

func TestAppendWhoseAnswerWasLostIsFoundCommitted(t *testing.T) {
	database := newWorld(t).database
	cut := pgtest.NewCutter(t, database.URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := newWorldOn(t, database, db)
	defer w.turns.Close()
	turn := w.start(w.request(nil, "hello"))
	turn.append(1)
	cut.CutReply("SELECT 1\x00") // the tag of the append's answer
	turn.append(2)
	if stats := w.turns.JournalStats(); cut.Count() != 1 || stats.Recovered.Load() != 1 || stats.Fenced.Load() != 0 {
		t.Errorf("cuts %d, recovered %d, fenced %d", cut.Count(), stats.Recovered.Load(), stats.Fenced.Load())
	}
	turn.append(1)
	if got := turn.read(0, 1<<20); !bytes.Equal(got, turn.frames) {
		t.Error("the log holds something else")
	}
}

func TestDownDatabaseIsNoFence(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	w.must(w.database.Server.Stop(t.Context()))
	answer := make(chan error, 1)
	a := turn.chunk(2)
	w.turns.Append(a, func(err error) { answer <- err })
	eventually(t, func() bool { return w.turns.JournalStats().Retries.Load() > 0 })
	select {
	case err := <-answer:
		t.Fatalf("answered while the database was down: %v", err)
	default:
	}
	w.must(w.database.Server.Start(t.Context()))
	w.must(<-answer)
	turn.stored(a)
	w.awaitRequests()
	if got := turn.read(0, 1<<20); !bytes.Equal(got, turn.frames) {
		t.Error("the log holds something else")
	}
}

func TestOneBadAppendFailsAlone(t *testing.T) {
	w := newWorld(t)
	const turns, bad = 12, 5
	var answers sync.WaitGroup
	failures := make([]error, turns)
	batches := make([]*protocol.TurnAppend, turns)
	for i := range batches {
		start := w.request(nil, "hello")
		start.MaxLiveTurns = turns
		batches[i] = w.start(start).chunk(1)
	}
	batches[bad].Records = []protocol.TurnRecord{{Kind: "no such kind", Body: []byte("{}")}}   // class 23
	batches[bad+1].Records = []protocol.TurnRecord{{Kind: "step", Body: []byte("not json {")}} // class 22
	for i, a := range batches {
		answers.Add(1)
		w.turns.Append(a, func(err error) { failures[i] = err; answers.Done() })
	}
	answers.Wait()
	for i, err := range failures {
		isBad := i == bad || i == bad+1
		if isBad != (err != nil) || errors.Is(err, protocol.ErrFenced) {
			t.Errorf("append %d: %v", i, err)
		}
	}
}

// A trigger refuses the rows of two turns with an error that is neither the data's nor an outage's.
func TestAnAppendThatIsRefusedAgainAndAgainFailsAloneAndHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	const turns, bad = 8, 2
	batches := make([]*protocol.TurnAppend, turns)
	for i := range batches {
		start := w.request(nil, "hello")
		start.MaxLiveTurns = turns
		batches[i] = w.start(start).chunk(1)
	}
	w.database.Admin(t, `create table refused (turn_id uuid, account_id uuid)`)
	w.database.Admin(t, `grant select on refused to turnstone_engine`)
	for i := range bad {
		w.database.Admin(t, fmt.Sprintf(`insert into refused values ('%x', '%x')`, batches[i].TurnID[:], batches[i].AccountID[:]))
	}
	w.database.Admin(t, `create function refuse() returns trigger language plpgsql as $$
		begin
			if exists (select from public.refused r where r.turn_id = new.turn_id) then
				raise exception 'index is corrupt' using errcode = 'XX002';
			end if;
			return new;
		end $$`)
	w.database.Admin(t, `create trigger refuse before insert on turn_events for each row execute function refuse()`)
	var answers sync.WaitGroup
	failures := make([]error, turns)
	stored := make(chan struct{}, turns)
	for i, a := range batches {
		answers.Add(1)
		w.turns.Append(a, func(err error) {
			if failures[i] = err; err == nil {
				stored <- struct{}{}
			}
			answers.Done()
		})
	}
	for range turns - bad { // before the bad ones are given up
		<-stored
	}
	answers.Wait()
	for i, err := range failures {
		if (i < bad) != (err != nil) || errors.Is(err, protocol.ErrFenced) {
			t.Errorf("append %d: %v", i, err)
		}
	}
	if refused := w.turns.JournalStats().Refused.Load(); refused != bad {
		t.Errorf("%d were refused", refused)
	}
}

func TestClosedJournalAnswersWhatWaits(t *testing.T) {
	w := newWorld(t)
	turn := w.start(w.request(nil, "hello"))
	w.must(w.database.Server.Stop(t.Context()))
	answer := make(chan error, 2)
	w.turns.Append(turn.chunk(1), func(err error) { answer <- err })
	eventually(t, func() bool { return w.turns.JournalStats().Retries.Load() > 0 })
	w.turns.Append(turn.chunk(1), func(err error) { answer <- err })
	w.turns.Close()
	for range 2 {
		if err := <-answer; protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Errorf("answered %v", err)
		}
	}
	if err := w.append(turn.chunk(1)); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a closed journal answers %v", err)
	}
	w.must(w.database.Server.Start(t.Context()))
}

func TestSelfTestLeavesNothingAndRefusesMissingPolicies(t *testing.T) {
	w := newWorld(t)
	const countSQL = `select count(*) from turn_events`
	rows, err := persistence.Row(t.Context(), w.db, w.account, pgx.RowTo[int], countSQL)
	if err != nil || rows != 0 {
		t.Errorf("%d rows left (%v)", rows, err)
	}
	w.database.Admin(t, `do $$ begin if (select count(*) from accounts) <> 1 then raise 'accounts were left'; end if; end $$`)
	w.database.Admin(t, `drop policy engine on turns`)
	if _, err := persistence.Open(t.Context(), persistence.Config{URL: w.database.URL}); err == nil {
		t.Error("opened without the engine's policy")
	} else {
		t.Log(err)
	}
}

// Comparing each record with each append would take 25 ms for a full batch.
func TestTheRecordsOfABatchAreNotComparedWithEachAppend(t *testing.T) {
	w := newWorld(t)
	plan, err := persistence.Rows(t.Context(), w.db, w.account, pgx.RowTo[string], "explain "+persistence.AppendRecordsSQL,
		[]string{}, []string{}, []string{}, []int32{}, []int64{}, []int64{}, [][]byte{}, []string{}, []bool{},
		[]string{}, []string{}, []string{}, []string{}, []int64{}, []string{})
	w.must(err)
	if text := strings.Join(plan, "\n"); !regexp.MustCompile(`Filter: \(\(hashed SubPlan \d+\) IS TRUE\)`).MatchString(text) {
		t.Error(text)
	}
}
