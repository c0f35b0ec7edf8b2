package main

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/protocol"
	"turnstone/providers/embedded"
)

// locked is a row of the service's database that a test holds, so that nothing can be stored in it.
type locked struct {
	t    *testing.T
	conn *pgx.Conn
	tx   pgx.Tx
}

// lock takes the row that a statement finds and reads its one column.
func (s *site) lock(t *testing.T, column any, sql string, id protocol.NodeID) *locked {
	t.Helper()
	address, err := url.Parse(s.owner)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(embedded.Superuser) // row-level security does not hold for it
	ctx := within(t, patience)
	l := &locked{t: t}
	if l.conn, err = pgx.Connect(ctx, address.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.conn.Close(context.WithoutCancel(ctx)) })
	if l.tx, err = l.conn.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.tx.QueryRow(ctx, sql, id.String()).Scan(column); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *locked) release() {
	l.t.Helper()
	if err := l.tx.Rollback(within(l.t, patience)); err != nil {
		l.t.Fatal(err)
	}
}

func turnOfText(t *testing.T, text string) (id protocol.TurnID) {
	t.Helper()
	if err := id.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return id
}

// While the row of a live turn cannot be written, no reader sees more of it and no command is acknowledged; what became
// of the commands is told once it can.
func TestNothingIsSeenOrAcknowledgedBeforeItIsDurable(t *testing.T) {
	s := newSite(t)
	s.up()
	u := newUser(t, s.base)
	conversation := u.newConversation(t)
	live := u.live(t, conversation, endlessTurn)
	turn := live.turn
	ended := u.following(t, live)
	var next int64
	row := s.lock(t, &next, `select next_sequence from turns where turn_id = $1 for update`, protocol.NodeID(turnOfText(t, turn)))

	for _, body := range []map[string]any{steering(turn, "while-locked", "half done", "next_step"), cancelling(turn)} {
		u.do(t, http.MethodPost, "/chat/steering", body).wantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	}
	if seen := int64(u.saw.count(turn)); seen >= next {
		t.Errorf("readers saw %d events, and %d are durable", seen, next-1)
	}
	var shown protocol.Turn
	u.get(t, "/chat/turns/"+turn, &shown)
	if shown.LastSequence != next-1 || shown.State != protocol.TurnRunning || !shown.AcceptingSteering {
		t.Errorf("the turn is shown as %+v", shown)
	}

	row.release()
	if _, err := insist(within(t, soon), u, cancelling(turn)); err != nil {
		t.Error(err)
	}
	awaitEnd(t, ended)
	u.settleSteering(t, turn, conversation, "while-locked")
	events, end := u.wholeLog(t, turn)
	if end.Status != protocol.TurnCancelled || countKind(events, "turn.cancel_requested") != 1 {
		t.Errorf("it ended %s after %d cancels", end.Status, countKind(events, "turn.cancel_requested"))
	}
}

// A turn that cannot be stored has no first byte, and leaves nothing.
func TestATurnThatCannotBeStoredDoesNotBegin(t *testing.T) {
	s := newSite(t)
	s.up()
	u := newUser(t, s.base)
	conversation := u.newConversation(t)
	var id protocol.ConversationID
	if err := id.UnmarshalText([]byte(conversation)); err != nil {
		t.Fatal(err)
	}
	var version int64
	row := s.lock(t, &version, `select version from conversations where conversation_id = $1 for update`, protocol.NodeID(id))
	refused := u.do(t, http.MethodPost, "/chat", saying("half done").in(conversation), "Idempotency-Key", "stored")
	refused.wantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	t.Logf("refused after %s", refused.took)
	row.release()
	if messages := u.messages(t, conversation); len(messages) != 0 {
		t.Errorf("%d messages of a turn that was refused", len(messages))
	}
	again := u.chat(t, saying("half done").in(conversation), "Idempotency-Key", "stored")
	if again.header.Get("Idempotent-Replayed") != "" {
		t.Error("a refusal was kept")
	}
	again.toTheEnd(t)
	if messages := u.messages(t, conversation); len(messages) != 2 {
		t.Errorf("%d messages", len(messages))
	}
}
