package main

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"turnstone/cmd/turnstone/sitetest"

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

// superuser connects to the service's database as somebody for whom row-level security does not hold.
func superuser(t *testing.T, s *sitetest.Site) *pgx.Conn {
	t.Helper()
	address, err := url.Parse(s.Owner)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(embedded.Superuser)
	conn, err := pgx.Connect(sitetest.Within(t, sitetest.Patience), address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// lockRow takes the row that a statement finds and reads its one column.
func lockRow(t *testing.T, s *sitetest.Site, column any, sql string, id protocol.NodeID) *locked {
	t.Helper()
	ctx := sitetest.Within(t, sitetest.Patience)
	l := &locked{t: t, conn: superuser(t, s)}
	var err error
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
	if err := l.tx.Rollback(sitetest.Within(l.t, sitetest.Patience)); err != nil {
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
	s := sitetest.NewSite(t)
	s.Up()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	live := u.Live(t, conversation, endlessTurn)
	turn := live.Turn
	ended := u.Following(t, live)
	var next int64
	over := u.Ledger.Plan()
	row := lockRow(t, s, &next, `select next_sequence from turns where turn_id = $1 for update`, protocol.NodeID(turnOfText(t, turn)))

	for _, body := range []map[string]any{sitetest.Steering(turn, "while-locked", "half done", "next_step"), sitetest.Cancelling(turn)} {
		u.Do(t, http.MethodPost, "/chat/steering", body).WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	}
	if seen := int64(u.Saw.Count(turn)); seen >= next {
		t.Errorf("readers saw %d events, and %d are durable", seen, next-1)
	}
	var shown protocol.Turn
	u.Get(t, "/chat/turns/"+turn, &shown)
	if shown.LastSequence != next-1 || shown.State != protocol.TurnRunning || !shown.AcceptingSteering {
		t.Errorf("the turn is shown as %+v", shown)
	}

	row.release()
	over()
	if _, err := sitetest.Insist(sitetest.Within(t, sitetest.Soon), u, sitetest.Cancelling(turn)); err != nil {
		t.Error(err)
	}
	sitetest.AwaitEnd(t, ended)
	settleSteering(t, u, turn, conversation, "while-locked")
	events, end := u.WholeLog(t, turn)
	if end.Status != protocol.TurnCancelled || sitetest.CountKind(events, "turn.cancel_requested") != 1 {
		t.Errorf("it ended %s after %d cancels", end.Status, sitetest.CountKind(events, "turn.cancel_requested"))
	}
}

// A turn that cannot be stored has no first byte, and leaves nothing.
func TestATurnThatCannotBeStoredDoesNotBegin(t *testing.T) {
	s := sitetest.NewSite(t)
	s.Up()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	var id protocol.ConversationID
	if err := id.UnmarshalText([]byte(conversation)); err != nil {
		t.Fatal(err)
	}
	var version int64
	over := u.Ledger.Plan()
	row := lockRow(t, s, &version, `select version from conversations where conversation_id = $1 for update`, protocol.NodeID(id))
	refused := u.Do(t, http.MethodPost, "/chat", sitetest.Saying("half done").In(conversation), "Idempotency-Key", "stored")
	refused.WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	t.Logf("refused after %s", refused.Took)
	row.release()
	over()
	if messages := u.Messages(t, conversation); len(messages) != 0 {
		t.Errorf("%d messages of a turn that was refused", len(messages))
	}
	again := u.Chat(t, sitetest.Saying("half done").In(conversation), "Idempotency-Key", "stored")
	if again.Header.Get("Idempotent-Replayed") != "" {
		t.Error("a refusal was kept")
	}
	again.ToTheEnd(t)
	if messages := u.Messages(t, conversation); len(messages) != 2 {
		t.Errorf("%d messages", len(messages))
	}
}
