package persistence_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

// of is a request of another account.
func (w *world) of(account protocol.AccountID, input string) *protocol.TurnStart {
	start := w.request(nil, input)
	start.AccountID = account
	return start
}

func (w *world) began(s persistence.Started, alone bool) *actedTurn {
	w.Helper()
	if s.Err != nil || s.Result == nil || s.Result.Spec == nil || s.Alone != alone {
		w.Fatalf("the turn does not begin, or began alone (%t): %+v, %v", s.Alone, s.Result, s.Err)
	}
	return w.alive(s.Result.Spec, s.Result.Begin)
}

func TestStartsOfManyAccountsShareATransaction(t *testing.T) {
	w := newWorld(t)
	other := pgtest.Account(t, w.db)
	temporary := w.of(other, "secret")
	temporary.Temporary = true
	started := w.turns.StartTogether(t.Context(), w.request(nil, "mine"), temporary, w.of(w.account, "mine too"))
	for i, s := range started {
		turn := w.began(s, false)
		start := []*protocol.TurnStart{w.request(nil, "mine"), temporary, w.request(nil, "mine too")}[i]
		history, more, err := w.turns.History(t.Context(), start.AccountID, turn.spec.ConversationID, turn.spec.BranchID, turn.spec.UserMessageID, 10, 1000)
		if err != nil || more || len(history) != 1 || history[0].Parts[0].Text != start.Input {
			t.Errorf("the history is %+v, %t, %v", history, more, err)
		}
		conversation, err := w.db.Conversation(t.Context(), start.AccountID, turn.spec.ConversationID)
		if err != nil || conversation.Temporary != start.Temporary {
			t.Errorf("the conversation is %+v, %v", conversation, err)
		}
		turn.append(2)
		turn.end(nil)
	}
	for account, want := range map[protocol.AccountID]int{w.account: 2, other: 1} {
		seen, err := persistence.Row(t.Context(), w.db, account, pgx.RowTo[int], `select count(*) from messages where role = 'assistant' and status = 'complete'`)
		if err != nil || seen != want {
			t.Errorf("an account sees %d answers, want %d (%v)", seen, want, err)
		}
	}
	// What began together goes on like any other.
	next := w.start(w.request(&started[0].Result.Spec.ConversationID, "more"))
	if next.spec.ParentMessageID == nil || *next.spec.ParentMessageID != started[0].Result.Spec.AssistantMessageID {
		t.Errorf("the next message follows %v", next.spec.ParentMessageID)
	}
}

func TestStartsOfAGroupAreRefusedOneByOne(t *testing.T) {
	w := newWorld(t)
	other, dead := pgtest.Account(t, w.db), w.of(pgtest.Account(t, w.db), "of a node that is gone")
	dead.Owner = protocol.NewNodeID()
	starts := []*protocol.TurnStart{w.of(protocol.NewAccountID(), "nobody's"), dead, w.of(other, "other")}
	for range testLiveTurns + 2 {
		starts = append(starts, w.request(nil, "mine"))
	}
	started := w.turns.StartTogether(t.Context(), starts...)
	if s := started[0]; s.Err == nil || !s.Alone {
		t.Errorf("of an account that is not there: %+v", s)
	}
	if code := protocol.CodeOf(started[1].Err); code != protocol.CodeUnavailable {
		t.Errorf("of a node that is gone: %s", code)
	}
	w.began(started[2], false)
	for i, s := range started[3:] {
		if i < testLiveTurns {
			w.began(s, false)
		} else if protocol.CodeOf(s.Err) != protocol.CodeTooManyLiveTurns {
			t.Errorf("beyond the limit: %+v", s)
		}
	}
}

func TestKeysOfAGroupCountOnce(t *testing.T) {
	w := newWorld(t)
	keyed := func(account protocol.AccountID, input, body string) *protocol.TurnStart {
		start := w.of(account, input)
		key := keyOf("same", body)
		start.Idempotency = &key
		return start
	}
	other := pgtest.Account(t, w.db)
	started := w.turns.StartTogether(t.Context(), keyed(w.account, "one", "a"), keyed(w.account, "one", "a"), keyed(other, "two", "b"), w.request(nil, "none"))
	first := w.began(started[0], false)
	if again := started[1]; again.Err != nil || !again.Result.Replayed || again.Result.Spec.TurnID != first.spec.TurnID {
		t.Errorf("the repeat is %+v", again)
	}
	w.began(started[2], false)
	w.began(started[3], false)
	started = w.turns.StartTogether(t.Context(), keyed(w.account, "changed", "c"), keyed(other, "two", "b"))
	if code := protocol.CodeOf(started[0].Err); code != protocol.CodeIdempotencyMismatch {
		t.Errorf("another body is %s", code)
	}
	if again := started[1]; again.Err != nil || !again.Result.Replayed {
		t.Errorf("the repeat is %+v", again)
	}
}

// A row that Postgres refuses, or a machine that breaks, is the misfortune of its own request.
func TestABadStartFailsAlone(t *testing.T) {
	for name, begin := range map[string]func(*protocol.TurnSpec) (protocol.TurnBegin, error){
		"refused": func(spec *protocol.TurnSpec) (protocol.TurnBegin, error) {
			first, err := beginTurn(spec)
			first.State = "dancing"
			return first, err
		},
		"failing": func(*protocol.TurnSpec) (protocol.TurnBegin, error) { return protocol.TurnBegin{}, errors.New("no") },
	} {
		w := newWorld(t)
		bad := w.of(pgtest.Account(t, w.db), "bad")
		bad.Begin = begin
		started := w.turns.StartTogether(t.Context(), w.request(nil, "good"), bad)
		if started[0].Err != nil || started[1].Err == nil {
			t.Errorf("%s: %+v", name, started)
		}
		turns, err := persistence.Row(t.Context(), w.db, w.account, pgx.RowTo[int], `select count(*) from turns`)
		if err != nil || turns != 1 {
			t.Errorf("%s: %d turns began (%v)", name, turns, err)
		}
	}
}

func TestGroupOfStartsWhoseAnswerWasLostIsStartedOnce(t *testing.T) {
	database := pgtest.NewDatabase(t)
	cut := pgtest.NewCutter(t, database.URL)
	db, err := persistence.Open(t.Context(), persistence.Config{URL: cut.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w := newWorldOn(t, database, db)
	cut.CutReply("COMMIT\x00")
	for _, s := range w.turns.StartTogether(t.Context(), w.request(nil, "one"), w.request(nil, "two")) {
		w.began(s, false)
	}
	turns, err := persistence.Row(t.Context(), w.db, w.account, pgx.RowTo[int], `select count(*) from turns`)
	if err != nil || turns != 2 || cut.Count() != 1 {
		t.Errorf("%d turns after %d cuts (%v)", turns, cut.Count(), err)
	}
}

// The policies of shared trips let nothing pass but the rows of the accounts that are named.
func TestASharedTripSeesItsAccountsOnly(t *testing.T) {
	w := newWorld(t)
	w.start(w.request(nil, "mine"))
	other := pgtest.Account(t, w.db)
	for _, c := range []struct {
		named string
		want  int
	}{{"", 0}, {"{}", 0}, {"{" + protocol.NodeID(other).String() + "}", 0}, {"{" + protocol.NodeID(w.account).String() + "}", 1}} {
		var seen int
		batch := &pgx.Batch{}
		batch.Queue(`select set_config('turnstone.account_ids', $1, true)`, c.named)
		batch.Queue(`select count(*) from turns`).QueryRow(func(row pgx.Row) error { return row.Scan(&seen) })
		if err := w.db.Send(t.Context(), persistence.Nobody, batch); err != nil || seen != c.want {
			t.Errorf("%q sees %d turns (%v)", c.named, seen, err)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue(`select set_config('turnstone.account_ids', $1, true)`, "{"+protocol.NodeID(w.account).String()+"}")
	batch.Queue(`insert into conversations (account_id, conversation_id, active_branch_id) values ($1, $2, $2)`, other, protocol.NewConversationID())
	if err := w.db.Send(t.Context(), persistence.Nobody, batch); err == nil {
		t.Error("a row of an account that is not named was stored")
	}
}
