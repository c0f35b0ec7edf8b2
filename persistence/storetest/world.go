// Package storetest has the fixture of the tests of the stores. Only tests import it.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"

	"turnstone/persistence"
	"turnstone/persistence/conversations"
	"turnstone/persistence/nodes"
	"turnstone/persistence/pg"
	"turnstone/persistence/pgtest"
	"turnstone/persistence/turns"
	"turnstone/protocol"
	"turnstone/protocol/clocktest"
	"turnstone/protocol/ownership"
	"turnstone/protocol/turnlog"
)

// World is the fixture of the tests: a database with a registered node, an account and the stores of turns.
type World struct {
	*testing.T
	Database  pgtest.Database
	DB        *persistence.Stores
	Turns     *turns.Store
	Directory *nodes.Directory
	Node      protocol.NodeID
	Account   protocol.AccountID
	// Logged is notified when the store of turns has logged something.
	Logged clocktest.Changes
	// Runner is the node as it passes itself to the store. Its limit is MaxLiveTurns, and its turns begin with BeginTurn.
	Runner turnlog.Runner
}

// MaxLiveTurns is the limit of live turns per account in a World.
const MaxLiveTurns = 3

// NewWorld returns a World on a new database.
func NewWorld(t *testing.T) *World {
	t.Helper()
	database := pgtest.NewDatabase(t)
	return NewWorldOn(t, database, database.Open(t))
}

// NewWorldOn returns a World on a database that is open.
func NewWorldOn(t *testing.T, database pgtest.Database, db *persistence.Stores) *World {
	t.Helper()
	w := &World{T: t, Database: database, DB: db, Node: protocol.NewNodeID(), Account: pgtest.Account(t, db)}
	w.Runner = turnlog.Runner{NodeID: w.Node, MaxLiveTurns: MaxLiveTurns, Begin: BeginTurn}
	w.Turns = db.StartTurns(turns.Options{Logger: zaptest.NewLogger(t, zaptest.WrapOptions(zap.Hooks(func(zapcore.Entry) error {
		w.Logged.Notify()
		return nil
	})))})
	t.Cleanup(w.Turns.Close)
	w.Directory = nodes.NewDirectory(db.DB)
	w.Must(w.Directory.Register(t.Context(), ownership.NewNode{NodeID: w.Node}))
	return w
}

// Must fails the test on an error.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// BeginTurn returns the first transition of a turn, which consists of one event.
func BeginTurn(spec *turnlog.Spec) (turnlog.Begin, error) {
	spec.Routing = protocol.TurnRouting{Profile: protocol.ProfileBalanced, ModelID: "scripted"}
	frames, err := protocol.AppendEvent(nil, spec.TurnID, 1, spec.CreatedAt, &protocol.TurnStarted{
		ConversationID: spec.ConversationID, BranchID: spec.BranchID, UserMessageID: spec.UserMessageID,
		AssistantMessageID: spec.AssistantMessageID, ParentMessageID: spec.ParentMessageID, AcceptingSteering: true,
	})
	return turnlog.Begin{Frames: append(frames, '\n'), Last: 1, State: protocol.TurnRunning, Accepts: true}, err
}

// Request returns the start of a turn; a nil conversation means a new one.
func (w *World) Request(conversation *protocol.ConversationID, input string) *turnlog.Start {
	return &turnlog.Start{
		AccountID: w.Account, ConversationID: conversation, Input: input, At: time.Now(),
	}
}

// Try starts a turn and returns the result.
func (w *World) Try(start *turnlog.Start) (*turnlog.StartResult, error) {
	return w.Turns.StartTurn(w.Context(), start, w.Runner)
}

// Start starts a turn, and fails the test if it does not start.
func (w *World) Start(start *turnlog.Start) *Turn {
	w.Helper()
	result, err := w.Try(start)
	if err != nil || result.Spec == nil {
		w.Fatalf("the turn did not start: %+v, %v", result, err)
	}
	return w.Simulate(result.Spec, result.Begin)
}

// AwaitRequests waits until requests succeed again after a restart of the server. The connections that the server
// closed are discovered one by one.
func (w *World) AwaitRequests() {
	w.Helper()
	Eventually(w.T, func() bool {
		_, err := pg.Row(w.Context(), w.DB.DB, w.Account, pgx.RowTo[int], `select 1`)
		return err == nil
	})
}

// Turn does the work of a turn's actor: it appends to the log and ends the turn.
type Turn struct {
	w      *World
	Spec   *turnlog.Spec
	Epoch  int32
	Next   int64
	Frames []byte // all stored frames
}

// Simulate returns the Turn for a turn that was started.
func (w *World) Simulate(spec *turnlog.Spec, begun turnlog.Begin) *Turn {
	return &Turn{w: w, Spec: spec, Epoch: 1, Next: begun.Last + 1, Frames: bytes.Clone(begun.Frames)}
}

// Chunk returns the turn's next append, of n deltas.
func (l *Turn) Chunk(n int) *turnlog.Append {
	l.w.Helper()
	a := &turnlog.Append{
		AccountID: l.Spec.AccountID, TurnID: l.Spec.TurnID, Owner: l.w.Node, Epoch: l.Epoch, First: l.Next, Last: l.Next + int64(n) - 1,
		State: protocol.TurnRunning, Accepts: true,
	}
	for sequence := a.First; sequence <= a.Last; sequence++ {
		a.Frames = l.Event(a.Frames, sequence, &protocol.AnswerDelta{
			PartID: protocol.DerivePartID(l.Spec.TurnID, 1), Delta: fmt.Sprintf("word %d \u2028\"", sequence),
		})
	}
	return a
}

// Event appends an encoded event to frames.
func (l *Turn) Event(frames []byte, sequence int64, payload protocol.Payload) []byte {
	l.w.Helper()
	frames, err := protocol.AppendEvent(frames, l.Spec.TurnID, sequence, time.Now(), payload)
	l.w.Must(err)
	return append(frames, '\n')
}

// Stored notes that an append was stored.
func (l *Turn) Stored(a *turnlog.Append) {
	l.Frames, l.Next = append(l.Frames, a.Frames...), a.Last+1
}

// Append stores a chunk of n deltas, and fails the test if it is not stored.
func (l *Turn) Append(n int) {
	l.w.Helper()
	a := l.Chunk(n)
	l.w.Must(l.w.Append(a))
	l.Stored(a)
}

// Append submits one batch to the journal and waits for the result.
func (w *World) Append(a *turnlog.Append) error {
	result := make(chan error, 1)
	w.Turns.Append(a, func(err error) { result <- err })
	select {
	case err := <-result:
		return err
	case <-time.After(WaitLimit):
		return errors.New("the append returned no result")
	}
}

// Finish returns the end of the turn as completed.
func (l *Turn) Finish() *turnlog.Finish {
	l.w.Helper()
	usage := protocol.Usage{InputTokens: 3, OutputTokens: 5}
	return &turnlog.Finish{
		Append: turnlog.Append{
			AccountID: l.Spec.AccountID, TurnID: l.Spec.TurnID, Owner: l.w.Node, Epoch: l.Epoch, First: l.Next, Last: l.Next,
			Frames: l.Event(nil, l.Next, &protocol.TurnFinished{
				Status: protocol.TurnCompleted, StopReason: protocol.StopEndTurn, MessageID: l.Spec.AssistantMessageID, LastSequence: l.Next, Usage: usage,
			}),
			State: protocol.TurnCompleted,
		},
		Spec: l.Spec, StopReason: protocol.StopEndTurn, Usage: usage, ModelID: "scripted-1", Status: protocol.MessageComplete,
		Parts: []protocol.Part{{Type: protocol.PartText, PartID: protocol.DerivePartID(l.Spec.TurnID, 1), Text: "answer"}},
		At:    time.Now(),
	}
}

// End finishes the turn and returns the turn that started next, if any. A change that is not nil modifies the finish
// first.
func (l *Turn) End(change func(*turnlog.Finish)) *turnlog.Started {
	l.w.Helper()
	finish := l.Finish()
	if change != nil {
		change(finish)
	}
	started, err := l.w.Turns.FinishTurn(l.w.Context(), finish, l.w.Runner)
	l.w.Must(err)
	l.Stored(&finish.Append)
	return started
}

// Read returns the log after a sequence. It reads pages of at most page bytes.
func (l *Turn) Read(after int64, page int) []byte {
	l.w.Helper()
	var all []byte
	for {
		frames, last, err := l.w.Turns.TurnFrames(l.w.Context(), l.Spec.AccountID, l.Spec.TurnID, after, page)
		l.w.Must(err)
		if len(frames) == 0 {
			return all
		}
		all, after = append(all, frames...), last
	}
}

// Jobs counts the jobs of a kind.
func (w *World) Jobs(kind string) (n int) {
	w.Helper()
	w.Must(w.AdminConn().QueryRow(w.Context(), `select count(*) from river.river_job where kind = $1`, kind).Scan(&n))
	return n
}

// OtherAccount creates another account.
func (w *World) OtherAccount() protocol.AccountID { return pgtest.Account(w.T, w.DB) }

// Queued adds a text to the follow-up queue of a conversation that has a live turn.
func (w *World) Queued(conversation protocol.ConversationID, text string) *protocol.FollowUp {
	w.Helper()
	start := w.Request(&conversation, text)
	start.IfBusy = protocol.BusyQueue
	result, err := w.Try(start)
	if err != nil || result.FollowUp == nil {
		w.Fatalf("queueing: %+v, %v", result, err)
	}
	return result.FollowUp
}

// QueueOf returns the queue of a conversation.
func (w *World) QueueOf(conversation protocol.ConversationID) turnlog.Queue {
	return turnlog.Queue{AccountID: w.Account, ConversationID: conversation, At: time.Now()}
}

// Change returns the change of a follow-up to a state.
func (w *World) Change(conversation protocol.ConversationID, item *protocol.FollowUp, state protocol.FollowUpState) *turnlog.FollowUpChange {
	return &turnlog.FollowUpChange{
		Queue: w.QueueOf(conversation), FollowUpID: item.FollowUpID, FollowUpChange: protocol.FollowUpChange{State: state, Version: &item.Version},
	}
}

// Count returns the number that a statement selects on behalf of the account.
func (w *World) Count(sql string) int {
	w.Helper()
	n, err := pg.Row(w.Context(), w.DB.DB, w.Account, pgx.RowTo[int], sql)
	w.Must(err)
	return n
}

// AdminConn opens a connection of the superuser, which row-level security does not restrict.
func (w *World) AdminConn() *pgx.Conn {
	w.Helper()
	conn, err := pgx.Connect(w.Context(), w.Database.AdminURL)
	w.Must(err)
	w.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Cancel stores a cancel request in the turn's log.
func (l *Turn) Cancel() {
	l.w.Helper()
	a := l.Chunk(1)
	a.Frames = l.Event(nil, a.First, &protocol.TurnCancelRequested{By: protocol.CancelledByDeletion, Scope: protocol.CancelTurnAndFollowUps})
	a.Records = []turnlog.Record{{Kind: turnlog.RecordCancel, Sequence: a.First, Body: []byte(`{}`)}}
	a.State, a.Accepts = protocol.TurnCancelling, false
	l.w.Must(l.w.Append(a))
	l.Stored(a)
}

// NewConversation creates an empty conversation.
func NewConversation(t testing.TB, db *persistence.Stores, account protocol.AccountID, title string) *protocol.Conversation {
	t.Helper()
	c, err := db.Conversations.CreateConversation(t.Context(), account, &conversations.NewConversation{ConversationID: protocol.NewConversationID(), Title: title})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Started returns the first event of a turn, with new identifiers for the branch and the messages.
func Started(conversation protocol.ConversationID) *protocol.TurnStarted {
	return &protocol.TurnStarted{
		ConversationID: conversation, BranchID: protocol.NewBranchID(), UserMessageID: protocol.NewMessageID(), AssistantMessageID: protocol.NewMessageID(),
	}
}

// WantCode fails the test unless err has the code.
func WantCode(t testing.TB, err error, code protocol.Code) {
	t.Helper()
	if err == nil || protocol.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

// WaitLimit limits each wait of the tests. A test that passes does not reach it.
const WaitLimit = clocktest.HangGuard

// Eventually polls a condition until it holds.
func Eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), WaitLimit)
	defer cancel()
	if clocktest.Poll(ctx, 10*time.Millisecond, holds) != nil {
		t.Fatal("the condition did not become true")
	}
}

// AwaitLocked waits until a statement of the database that starts with beginning waits for a lock.
func AwaitLocked(t *testing.T, database pgtest.Database, beginning string) {
	t.Helper()
	AwaitWaiting(t, database, beginning, true)
}

// AwaitWaiting waits until a statement that starts with beginning waits for a lock (want is true), or until none does
// (want is false).
func AwaitWaiting(t *testing.T, database pgtest.Database, beginning string, want bool) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database.AdminURL) // in a transaction, pg_stat_activity would not change
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	Eventually(t, func() bool {
		var waits bool
		err := conn.QueryRow(t.Context(), `
			select exists (select from pg_stat_activity
				where datname = current_database() and wait_event_type = 'Lock' and starts_with(ltrim(query, E' \n'), $1))`, beginning).Scan(&waits)
		return err == nil && waits == want
	})
}

// KeyOf returns the idempotency key of a request with this body.
func KeyOf(key, body string) protocol.IdempotencyKey {
	return protocol.IdempotencyKey{Method: "POST", Path: "/things", Key: key, BodyHash: sha256.Sum256([]byte(body))}
}

// Together runs work for n callers at the same time and returns their errors.
func Together(n int, work func(i int) error) []error {
	failures := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { failures[i] = work(i) })
	}
	all.Wait()
	return failures
}

// CopyWaiting adds n copies of each turn that wait for an approval without an owner.
func (w *World) CopyWaiting(n int) {
	w.Helper()
	w.Database.Admin(w.T, fmt.Sprintf(`do $$ declare columns text := (
			select string_agg(quote_ident(column_name), ', ') from information_schema.columns
			where table_name = 'turns' and is_generated = 'NEVER' and column_name not in ('turn_id', 'owner', 'state', 'parked_until'));
		begin
			execute format('insert into turns (turn_id, owner, state, parked_until, %%1$s)
				select gen_random_uuid(), null, ''requires_action'', now() + interval ''1 day'', %%1$s from turns, generate_series(1, %d)', columns);
		end $$`, n))
}
