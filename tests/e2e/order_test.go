package e2e

import (
	"context"
	"net/http"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"turnstone/cmd/turnstone/sitetest"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
	"turnstone/providers/embedded"
)

// lockedRow is a row of the service's database that a test has locked, so that the service cannot change it.
type lockedRow struct {
	t    *testing.T
	conn *pgx.Conn
	tx   pgx.Tx
}

// superuser connects to the service's database as the superuser, which bypasses row-level security.
func superuser(t *testing.T, s *sitetest.Site) *pgx.Conn {
	t.Helper()
	address, err := url.Parse(s.Owner)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(embedded.Superuser)
	conn, err := pgx.Connect(sitetest.Within(t, sitetest.HangGuard), address.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// lockRow locks the row that a statement selects and reads its only column.
func lockRow(t *testing.T, s *sitetest.Site, column any, sql string, id protocol.NodeID) *lockedRow {
	t.Helper()
	ctx := sitetest.Within(t, sitetest.HangGuard)
	l := &lockedRow{t: t, conn: superuser(t, s)}
	var err error
	if l.tx, err = l.conn.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.tx.QueryRow(ctx, sql, id.String()).Scan(column); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lockedRow) release() {
	l.t.Helper()
	if err := l.tx.Rollback(sitetest.Within(l.t, sitetest.HangGuard)); err != nil {
		l.t.Fatal(err)
	}
}

// TestNothingIsSeenOrAcknowledgedBeforeItIsDurable checks that while the row of a live turn is locked, no reader sees
// further events and no command is acknowledged. Once the row is free, the outcome of the commands can be read.
func TestNothingIsSeenOrAcknowledgedBeforeItIsDurable(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	live := u.Live(t, conversation, endlessTurn)
	turn := live.Turn
	ended := u.FollowInBackground(t, live)
	var next int64
	over := u.Ledger.Plan()
	row := lockRow(t, s, &next, `select next_sequence from turns where turn_id = $1 for update`, protocol.NodeID(idtest.Parse[protocol.TurnID](t, turn)))

	for _, body := range []map[string]any{sitetest.SteeringBody(turn, "while-locked", "half done", "next_step"), sitetest.CancelBody(turn)} {
		u.Do(t, http.MethodPost, "/chat/steering", body).WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	}
	if seen := int64(u.Witness.Count(turn)); seen >= next {
		t.Errorf("readers saw %d events, but only %d are durable", seen, next-1)
	}
	var shown protocol.Turn
	u.Get(t, "/chat/turns/"+turn, &shown)
	if shown.LastSequence != next-1 || shown.State != protocol.TurnRunning || !shown.AcceptingSteering {
		t.Errorf("the turn is shown as %+v", shown)
	}

	row.release()
	over()
	if _, err := sitetest.SendUntilDecided(sitetest.Within(t, sitetest.HangGuard), u, sitetest.CancelBody(turn)); err != nil {
		t.Error(err)
	}
	sitetest.AwaitEnd(t, ended)
	settleSteering(t, u, turn, conversation, "while-locked")
	events, end := u.WholeLog(t, turn)
	if end.Status != protocol.TurnCancelled || sitetest.CountKind(events, "turn.cancel_requested") != 1 {
		t.Errorf("the turn ended %s, and its log has %d cancel requests", end.Status, sitetest.CountKind(events, "turn.cancel_requested"))
	}
}

// TestATurnThatCannotBeStoredDoesNotBegin checks that a turn that cannot be stored is refused before its first event
// and that nothing of it is stored.
func TestATurnThatCannotBeStoredDoesNotBegin(t *testing.T) {
	t.Parallel()
	s := sitetest.NewSite(t)
	s.Start()
	u := sitetest.NewUser(t, s.Base)
	conversation := u.NewConversation(t)
	var id protocol.ConversationID
	if err := id.UnmarshalText([]byte(conversation)); err != nil {
		t.Fatal(err)
	}
	var version int64
	over := u.Ledger.Plan()
	row := lockRow(t, s, &version, `select version from conversations where conversation_id = $1 for update`, protocol.NodeID(id))
	refused := u.Do(t, http.MethodPost, "/chat", sitetest.NewChatBody("half done").In(conversation), "Idempotency-Key", "stored")
	refused.WantProblem(t, http.StatusServiceUnavailable, protocol.CodeUnavailable)
	t.Logf("refused after %s", refused.Took)
	row.release()
	over()
	if messages := u.Messages(t, conversation); len(messages) != 0 {
		t.Errorf("%d messages of a turn that was refused", len(messages))
	}
	again := u.Chat(t, sitetest.NewChatBody("half done").In(conversation), "Idempotency-Key", "stored")
	if again.Header.Get("Idempotent-Replayed") != "" {
		t.Error("the refusal was stored for the key")
	}
	again.ReadToEnd(t)
	if messages := u.Messages(t, conversation); len(messages) != 2 {
		t.Errorf("%d messages", len(messages))
	}
}
