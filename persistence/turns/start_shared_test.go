package turns_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/storetest"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// requestOf returns the start of a turn of another account.
func requestOf(w *storetest.World, account protocol.AccountID, input string) *turnlog.Start {
	start := w.Request(nil, input)
	start.AccountID = account
	return start
}

// on returns requests to start turns that a node runs.
func on(node turnlog.Runner, starts ...*turnlog.Start) (requests []turns.Request) {
	for _, start := range starts {
		requests = append(requests, turns.Request{Start: start, On: node})
	}
	return requests
}

func wantStarted(w *storetest.World, s turns.Started, alone bool) *storetest.Turn {
	w.Helper()
	if s.Err != nil || s.Result == nil || s.Result.Spec == nil || s.Alone != alone {
		w.Fatalf("the turn did not start as wanted (alone: %t): %+v, %v", s.Alone, s.Result, s.Err)
	}
	return w.Simulate(s.Result.Spec, s.Result.Begin)
}

func TestStartsOfManyAccountsShareATransaction(t *testing.T) {
	w := storetest.NewWorld(t)
	other := pgtest.Account(t, w.DB)
	temporary := requestOf(w, other, "secret")
	temporary.Temporary = true
	started := w.Turns.StartTogether(t.Context(), on(w.Runner, w.Request(nil, "mine"), temporary, requestOf(w, w.Account, "mine too"))...)
	for i, s := range started {
		turn := wantStarted(w, s, false)
		start := []*turnlog.Start{w.Request(nil, "mine"), temporary, w.Request(nil, "mine too")}[i]
		history, more, err := w.Turns.History(t.Context(), start.AccountID, turn.Spec.ConversationID, turn.Spec.BranchID, turn.Spec.UserMessageID, 10, 1000)
		if err != nil || more || len(history) != 1 || history[0].Parts[0].Text != start.Input {
			t.Errorf("the history is %+v, %t, %v", history, more, err)
		}
		conversation, err := w.DB.Conversations.Conversation(t.Context(), start.AccountID, turn.Spec.ConversationID)
		if err != nil || conversation.Temporary != start.Temporary {
			t.Errorf("the conversation is %+v, %v", conversation, err)
		}
		turn.Append(2)
		turn.End(nil)
	}
	for account, want := range map[protocol.AccountID]int{w.Account: 2, other: 1} {
		seen, err := pg.Row(t.Context(), w.DB.DB, account, pgx.RowTo[int], `select count(*) from messages where role = 'assistant' and status = 'complete'`)
		if err != nil || seen != want {
			t.Errorf("an account sees %d answers, want %d (%v)", seen, want, err)
		}
	}
	// A turn that was started with a group continues like any other.
	next := w.Start(w.Request(&started[0].Result.Spec.ConversationID, "more"))
	if next.Spec.ParentMessageID == nil || *next.Spec.ParentMessageID != started[0].Result.Spec.AssistantMessageID {
		t.Errorf("the next message follows %v", next.Spec.ParentMessageID)
	}
}

func TestStartsOfAGroupAreRefusedOneByOne(t *testing.T) {
	w := storetest.NewWorld(t)
	other, unknownNode := pgtest.Account(t, w.DB), requestOf(w, pgtest.Account(t, w.DB), "by an unknown node")
	requests := on(w.Runner, requestOf(w, protocol.NewAccountID(), "nobody's"), unknownNode, requestOf(w, other, "other"))
	requests[1].On.NodeID = protocol.NewNodeID()
	for range storetest.MaxLiveTurns + 2 {
		requests = append(requests, on(w.Runner, w.Request(nil, "mine"))...)
	}
	started := w.Turns.StartTogether(t.Context(), requests...)
	if s := started[0]; s.Err == nil || !s.Alone {
		t.Errorf("a start of an unknown account: %+v", s)
	}
	if code := protocol.CodeOf(started[1].Err); code != protocol.CodeUnavailable {
		t.Errorf("a start by an unknown node: %s", code)
	}
	wantStarted(w, started[2], false)
	for i, s := range started[3:] {
		if i < storetest.MaxLiveTurns {
			wantStarted(w, s, false)
		} else if protocol.CodeOf(s.Err) != protocol.CodeTooManyLiveTurns {
			t.Errorf("a start beyond the limit: %+v", s)
		}
	}
}

func TestAKeyStartsOneTurnInAGroup(t *testing.T) {
	w := storetest.NewWorld(t)
	keyed := func(account protocol.AccountID, input, body string) *turnlog.Start {
		start := requestOf(w, account, input)
		key := storetest.KeyOf("same", body)
		start.Idempotency = &key
		return start
	}
	other := pgtest.Account(t, w.DB)
	started := w.Turns.StartTogether(t.Context(), on(w.Runner, keyed(w.Account, "one", "a"), keyed(w.Account, "one", "a"), keyed(other, "two", "b"), w.Request(nil, "none"))...)
	first := wantStarted(w, started[0], false)
	if again := started[1]; again.Err != nil || !again.Result.Replayed || again.Result.Spec.TurnID != first.Spec.TurnID {
		t.Errorf("the repeat is %+v", again)
	}
	wantStarted(w, started[2], false)
	wantStarted(w, started[3], false)
	started = w.Turns.StartTogether(t.Context(), on(w.Runner, keyed(w.Account, "changed", "c"), keyed(other, "two", "b"))...)
	if code := protocol.CodeOf(started[0].Err); code != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body is %s", code)
	}
	if again := started[1]; again.Err != nil || !again.Result.Replayed {
		t.Errorf("the repeat is %+v", again)
	}
}

// A row that Postgres refuses, or a Begin that fails, fails only its own request.
func TestABadStartFailsAlone(t *testing.T) {
	for name, begin := range map[string]func(*turnlog.Spec) (turnlog.Begin, error){
		"refused": func(spec *turnlog.Spec) (turnlog.Begin, error) {
			first, err := storetest.BeginTurn(spec)
			first.State = "unknown"
			return first, err
		},
		"failing": func(*turnlog.Spec) (turnlog.Begin, error) { return turnlog.Begin{}, errors.New("no") },
	} {
		w := storetest.NewWorld(t)
		bad := requestOf(w, pgtest.Account(t, w.DB), "bad")
		requests := on(w.Runner, w.Request(nil, "good"), bad)
		requests[1].On.Begin = begin
		started := w.Turns.StartTogether(t.Context(), requests...)
		if started[0].Err != nil || started[1].Err == nil {
			t.Errorf("%s: %+v", name, started)
		}
		turns, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[int], `select count(*) from turns`)
		if err != nil || turns != 1 {
			t.Errorf("%s: %d turns started (%v)", name, turns, err)
		}
	}
}

func TestAGroupOfStartsWhoseReplyWasLostIsStartedOnce(t *testing.T) {
	database := pgtest.NewDatabase(t)
	cut := pgtest.NewCutter(t, database.URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := storetest.NewWorldOn(t, database, db)
	cut.CutReply("COMMIT\x00")
	for _, s := range w.Turns.StartTogether(t.Context(), on(w.Runner, w.Request(nil, "one"), w.Request(nil, "two"))...) {
		wantStarted(w, s, false)
	}
	turns, err := pg.Row(t.Context(), w.DB.DB, w.Account, pgx.RowTo[int], `select count(*) from turns`)
	if err != nil || turns != 2 || cut.Count() != 1 {
		t.Errorf("%d turns after %d cuts (%v)", turns, cut.Count(), err)
	}
}

// The policies of shared round trips permit only the rows of the accounts that are named.
func TestASharedTripSeesItsAccountsOnly(t *testing.T) {
	w := storetest.NewWorld(t)
	w.Start(w.Request(nil, "mine"))
	other := pgtest.Account(t, w.DB)
	for _, c := range []struct {
		setAccounts string
		want        int
	}{{"", 0}, {"{}", 0}, {"{" + protocol.NodeID(other).String() + "}", 0}, {"{" + protocol.NodeID(w.Account).String() + "}", 1}} {
		var seen int
		batch := &pgx.Batch{}
		batch.Queue(`select set_config('turnstone.account_ids', $1, true)`, c.setAccounts)
		batch.Queue(`select count(*) from turns`).QueryRow(func(row pgx.Row) error { return row.Scan(&seen) })
		if err := w.DB.Send(t.Context(), pg.NoAccount, batch); err != nil || seen != c.want {
			t.Errorf("%q sees %d turns (%v)", c.setAccounts, seen, err)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(`select set_config('turnstone.account_ids', $1, true)`, "{"+protocol.NodeID(w.Account).String()+"}")
	batch.Queue(`insert into conversations (account_id, conversation_id, active_branch_id) values ($1, $2, $2)`, other, protocol.NewConversationID())
	if err := w.DB.Send(t.Context(), pg.NoAccount, batch); err == nil {
		t.Error("a row of an account that is not named was stored")
	}
}
