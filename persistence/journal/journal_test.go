package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/audit"
	"turnstone/persistence/journal"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

func TestAppendIsFencedByOwnerEpochAndSequence(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	turn.Append(2)
	for name, change := range map[string]func(*turnlog.Append){
		"another owner":   func(a *turnlog.Append) { a.Owner = protocol.NewNodeID() },
		"an old epoch":    func(a *turnlog.Append) { a.Epoch-- },
		"a new epoch":     func(a *turnlog.Append) { a.Epoch++ },
		"a gap":           func(a *turnlog.Append) { a.First++; a.Last++ },
		"another account": func(a *turnlog.Append) { a.AccountID = protocol.NewAccountID() },
		"an unknown turn": func(a *turnlog.Append) { a.TurnID = protocol.NewTurnID() },
		"an overlap":      func(a *turnlog.Append) { a.First-- },
	} {
		a := turn.Chunk(1)
		change(a)
		if err := w.Append(a); !errors.Is(err, ownership.ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	turn.Append(1)
	if got := turn.Read(0, 1<<20); !bytes.Equal(got, turn.Frames) {
		t.Errorf("the log is\n%s\nwant\n%s", got, turn.Frames)
	}
	turn.End(nil)
	if err := w.Append(turn.Chunk(1)); !errors.Is(err, ownership.ErrFenced) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAppendsOfOneTurnKeepTheirOrder(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	const appends = 50
	var pending sync.WaitGroup
	var mu sync.Mutex
	var failed []error
	for range appends {
		a := turn.Chunk(1)
		turn.Stored(a)
		pending.Add(1)
		w.Turns.Append(a, func(err error) {
			mu.Lock()
			failed = append(failed, err)
			mu.Unlock()
			pending.Done()
		})
	}
	pending.Wait()
	w.Must(errors.Join(failed...))
	if got := turn.Read(0, 1<<20); !bytes.Equal(got, turn.Frames) {
		t.Error("the log differs from the appended frames")
	}
}

func TestManyTurnsShareAStatement(t *testing.T) {
	w := storetest.NewWorld(t)
	turns := make([]*storetest.Turn, 100)
	for i := range turns {
		start := w.Request(nil, "hello")
		w.Runner.MaxLiveTurns = len(turns)
		turns[i] = w.Start(start)
	}
	var pending sync.WaitGroup
	failures := make(chan error, len(turns))
	for _, turn := range turns {
		a := turn.Chunk(3)
		a.Records = []turnlog.Record{{Kind: turnlog.RecordStep, Key: "1", Sequence: a.First, Body: []byte(`{"a": 1}`)}}
		pending.Add(1)
		w.Turns.Append(a, func(err error) { failures <- err; pending.Done() })
		turn.Stored(a)
	}
	pending.Wait()
	for range turns {
		w.Must(<-failures)
	}
	stats := w.Turns.JournalStats()
	if batches := stats.Batches.Load(); stats.Appends.Load() != int64(len(turns)) || batches >= int64(len(turns)) {
		t.Errorf("%d appends in %d statements", stats.Appends.Load(), batches)
	}
	for _, turn := range turns {
		if got := turn.Read(0, 1<<20); !bytes.Equal(got, turn.Frames) {
			t.Fatal("a log differs from the appended frames")
		}
		record, err := w.Turns.TurnRecord(t.Context(), w.Account, turn.Spec.TurnID, turnlog.RecordStep, "1")
		if err != nil || record == nil || string(record.Body) != `{"a": 1}` || record.Sequence != 2 {
			t.Fatalf("the record is %+v (%v)", record, err)
		}
	}
}

func TestAnAppendWhoseReplyWasLostIsFoundCommitted(t *testing.T) {
	database := storetest.NewWorld(t).Database
	cut := pgtest.NewCutter(t, database.URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	w := storetest.NewWorldOn(t, database, db)
	defer w.Turns.Close()
	turn := w.Start(w.Request(nil, "hello"))
	turn.Append(1)
	cut.CutReply("SELECT 1\x00") // the command tag of the reply to the append
	turn.Append(2)
	if stats := w.Turns.JournalStats(); cut.Count() != 1 || stats.Recovered.Load() != 1 || stats.Fenced.Load() != 0 {
		t.Errorf("cuts %d, recovered %d, fenced %d", cut.Count(), stats.Recovered.Load(), stats.Fenced.Load())
	}
	turn.Append(1)
	if got := turn.Read(0, 1<<20); !bytes.Equal(got, turn.Frames) {
		t.Error("the log differs from the appended frames")
	}
}

func TestAppendsAreRetriedDuringAnOutage(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	w.Must(w.Database.Server.Stop(t.Context()))
	result := make(chan error, 1)
	a := turn.Chunk(2)
	w.Turns.Append(a, func(err error) { result <- err })
	w.Logged.Await(t, "the append is repeated", func() bool { return w.Turns.JournalStats().Retries.Load() > 0 })
	select {
	case err := <-result:
		t.Fatalf("the append returned while the database was down: %v", err)
	default:
	}
	w.Must(w.Database.Server.Start(t.Context()))
	w.Must(<-result)
	turn.Stored(a)
	w.AwaitRequests()
	if got := turn.Read(0, 1<<20); !bytes.Equal(got, turn.Frames) {
		t.Error("the log differs from the appended frames")
	}
}

func TestOneBadAppendFailsAlone(t *testing.T) {
	w := storetest.NewWorld(t)
	const turns, bad = 12, 5
	var pending sync.WaitGroup
	failures := make([]error, turns)
	batches := make([]*turnlog.Append, turns)
	for i := range batches {
		start := w.Request(nil, "hello")
		w.Runner.MaxLiveTurns = turns
		batches[i] = w.Start(start).Chunk(1)
	}
	batches[bad].Records = []turnlog.Record{{Kind: "no such kind", Body: []byte("{}")}}   // class 23
	batches[bad+1].Records = []turnlog.Record{{Kind: "step", Body: []byte("not json {")}} // class 22
	for i, a := range batches {
		pending.Add(1)
		w.Turns.Append(a, func(err error) { failures[i] = err; pending.Done() })
	}
	pending.Wait()
	for i, err := range failures {
		isBad := i == bad || i == bad+1
		if isBad != (err != nil) || errors.Is(err, ownership.ErrFenced) {
			t.Errorf("append %d: %v", i, err)
		}
	}
}

// A trigger refuses the rows of two turns with an error that is neither a data error nor an outage.
func TestAnAppendThatIsRefusedAgainAndAgainFailsAloneAndHoldsUpNoOther(t *testing.T) {
	w := storetest.NewWorld(t)
	const turns, bad = 8, 2
	batches := make([]*turnlog.Append, turns)
	for i := range batches {
		start := w.Request(nil, "hello")
		w.Runner.MaxLiveTurns = turns
		batches[i] = w.Start(start).Chunk(1)
	}
	w.Database.Admin(t, `create table refused (turn_id uuid, account_id uuid)`)
	w.Database.Admin(t, `grant select on refused to turnstone_engine`)
	for i := range bad {
		w.Database.Admin(t, fmt.Sprintf(`insert into refused values ('%x', '%x')`, batches[i].TurnID[:], batches[i].AccountID[:]))
	}
	w.Database.Admin(t, `create function refuse() returns trigger language plpgsql as $$
		begin
			if exists (select from public.refused r where r.turn_id = new.turn_id) then
				raise exception 'index is corrupt' using errcode = 'XX002';
			end if;
			return new;
		end $$`)
	w.Database.Admin(t, `create trigger refuse before insert on turn_events for each row execute function refuse()`)
	var pending sync.WaitGroup
	failures := make([]error, turns)
	stored := make(chan struct{}, turns)
	for i, a := range batches {
		pending.Add(1)
		w.Turns.Append(a, func(err error) {
			if failures[i] = err; err == nil {
				stored <- struct{}{}
			}
			pending.Done()
		})
	}
	for range turns - bad { // before the journal gives up the bad ones
		<-stored
	}
	pending.Wait()
	for i, err := range failures {
		if (i < bad) != (err != nil) || errors.Is(err, ownership.ErrFenced) {
			t.Errorf("append %d: %v", i, err)
		}
	}
	if refused := w.Turns.JournalStats().Refused.Load(); refused != bad {
		t.Errorf("%d appends were refused", refused)
	}
}

func TestClosingTheJournalFailsWaitingAppendsAsUnavailable(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "hello"))
	w.Must(w.Database.Server.Stop(t.Context()))
	result := make(chan error, 2)
	w.Turns.Append(turn.Chunk(1), func(err error) { result <- err })
	w.Logged.Await(t, "the append is repeated", func() bool { return w.Turns.JournalStats().Retries.Load() > 0 })
	w.Turns.Append(turn.Chunk(1), func(err error) { result <- err })
	w.Turns.Close()
	for range 2 {
		if err := <-result; protocol.CodeOf(err) != protocol.CodeUnavailable {
			t.Errorf("the append returned %v", err)
		}
	}
	if err := w.Append(turn.Chunk(1)); protocol.CodeOf(err) != protocol.CodeUnavailable {
		t.Errorf("a closed journal returned %v", err)
	}
	w.Must(w.Database.Server.Start(t.Context()))
}

func TestSelfTestLeavesNothingAndRefusesMissingPolicies(t *testing.T) {
	w := storetest.NewWorld(t)
	const countSQL = `select count(*) from turn_events`
	rows, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[int], countSQL)
	if err != nil || rows != 0 {
		t.Errorf("%d rows left (%v)", rows, err)
	}
	w.Database.Admin(t, `do $$ begin if (select count(*) from accounts) <> 1 then raise 'accounts were left'; end if; end $$`)
	w.Database.Admin(t, `drop policy engine on turns`)
	if _, err := persistence.Open(t.Context(), persistence.Config{URL: w.Database.URL}); err == nil {
		t.Error("opened without the engine's policy")
	} else {
		t.Log(err)
	}
}

// Comparing each record with each append would take 25 ms for a full batch.
func TestRecordsAreNotComparedWithEveryAppend(t *testing.T) {
	w := storetest.NewWorld(t)
	plan, err := pg.Rows(t.Context(), w.DB.DB, w.Account, pgx.RowTo[string], "explain "+journal.AppendRecordsSQL,
		[]string{}, []string{}, []string{}, []int32{}, []int64{}, []int64{}, [][]byte{}, []string{}, []bool{},
		[]string{}, []string{}, []string{}, []string{}, []int64{}, []string{})
	w.Must(err)
	if text := strings.Join(plan, "\n"); !regexp.MustCompile(`Filter: \(\(hashed SubPlan \d+\) IS TRUE\)`).MatchString(text) {
		t.Error(text)
	}
}

// The approvals of several accounts lock their audits in the order of the accounts, whatever the order of the turns.
func TestTheAuditsOfAStatementAreLockedInTheOrderOfTheAccounts(t *testing.T) {
	w := storetest.NewWorld(t)
	low, high := w.Account, pgtest.Account(t, w.DB)
	request := w.Request(nil, "hello")
	request.AccountID = high
	turns := []*storetest.Turn{w.Start(request), w.Start(w.Request(nil, "hello"))}
	for _, account := range []protocol.AccountID{low, high} {
		w.Must(w.DB.Audit.Record(t.Context(), account, audit.EventSignedIn, nil, nil, audit.Requester{}))
	}
	conn, err := pgx.Connect(t.Context(), w.Database.AdminURL)
	w.Must(err)
	defer func() { w.Must(conn.Close(context.WithoutCancel(t.Context()))) }()
	lock := func(account protocol.AccountID) error {
		_, err := conn.Exec(t.Context(), `select from audit_heads where account_id = $1 for update nowait`, account)
		return err
	}
	_, err = conn.Exec(t.Context(), `begin`)
	w.Must(err)
	w.Must(lock(low))
	stored := make(chan error, 1)
	go func() {
		appends := make([]*turnlog.Append, len(turns))
		for i, turn := range turns {
			appends[i] = turn.Chunk(1)
			appends[i].Records = []turnlog.Record{{Kind: turnlog.RecordUse, Key: "call", Sequence: appends[i].First, Body: []byte(`{}`)}}
		}
		stored <- journal.AppendTogether(t.Context(), w.DB.DB, appends...)
	}()
	storetest.AwaitLocked(t, w.Database, "with batch as")
	if err := lock(high); err != nil {
		t.Errorf("while the statement waits for the first account, the second one is locked: %v", err)
	}
	_, err = conn.Exec(t.Context(), `commit`)
	w.Must(err)
	w.Must(<-stored)
	if n := w.Count(`select count(*) from audit where event = 'approval.used'`); n != 1 {
		t.Errorf("the account has %d entries, want 1", n)
	}
}
