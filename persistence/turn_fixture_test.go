package persistence_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap/zaptest"

	"turnstone/persistence"
	"turnstone/persistence/pgtest"
	"turnstone/protocol"
)

// world is a database with a node, an account and the turns' store.
type world struct {
	*testing.T
	database  pgtest.Database
	db        *persistence.DB
	turns     *persistence.Turns
	directory *persistence.Directory
	node      protocol.NodeID
	account   protocol.AccountID
}

const testLiveTurns = 3

func newWorld(t *testing.T) *world {
	t.Helper()
	database := pgtest.NewDatabase(t)
	return newWorldOn(t, database, database.Open(t))
}

func newWorldOn(t *testing.T, database pgtest.Database, db *persistence.DB) *world {
	t.Helper()
	w := &world{T: t, database: database, db: db, node: protocol.NewNodeID(), account: pgtest.Account(t, db)}
	w.turns = persistence.NewTurns(db, persistence.TurnsOptions{Logger: zaptest.NewLogger(t)})
	t.Cleanup(w.turns.Close)
	w.directory = persistence.NewDirectory(db, persistence.DirectoryOptions{MaxLiveTurns: testLiveTurns})
	w.must(w.directory.Register(t.Context(), w.node, "", nil))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// beginTurn is a first transition of one event.
func beginTurn(spec *protocol.TurnSpec) (protocol.TurnBegin, error) {
	spec.Routing = protocol.TurnRouting{Profile: protocol.ProfileBalanced, ModelID: "scripted"}
	frames, err := protocol.AppendEvent(nil, spec.TurnID, 1, spec.CreatedAt, &protocol.TurnStarted{
		ConversationID: spec.ConversationID, BranchID: spec.BranchID, UserMessageID: spec.UserMessageID,
		AssistantMessageID: spec.AssistantMessageID, ParentMessageID: spec.ParentMessageID, AcceptingSteering: true,
	})
	return protocol.TurnBegin{Frames: append(frames, '\n'), Last: 1, State: protocol.TurnRunning, Accepts: true}, err
}

func (w *world) request(conversation *protocol.ConversationID, input string) *protocol.TurnStart {
	return &protocol.TurnStart{
		AccountID: w.account, Owner: w.node, ConversationID: conversation, Input: input, MaxLiveTurns: testLiveTurns,
		At: time.Now(), Begin: beginTurn,
	}
}

func (w *world) try(start *protocol.TurnStart) (*protocol.TurnStartResult, error) {
	return w.turns.StartTurn(w.Context(), start)
}

// start begins a turn that must begin.
func (w *world) start(start *protocol.TurnStart) *actedTurn {
	w.Helper()
	result, err := w.try(start)
	if err != nil || result.Spec == nil {
		w.Fatalf("the turn does not begin: %+v, %v", result, err)
	}
	return w.alive(result.Spec, result.Begin)
}

// awaitRequests waits until requests pass again after a restart of the server: connections that it closed are found out
// one by one.
func (w *world) awaitRequests() {
	w.Helper()
	eventually(w.T, func() bool {
		_, err := persistence.Row(w.Context(), w.db, w.account, pgx.RowTo[int], `select 1`)
		return err == nil
	})
}

// actedTurn plays the actor of a turn.
type actedTurn struct {
	w      *world
	spec   *protocol.TurnSpec
	epoch  int32
	next   int64
	frames []byte // all that was stored
}

func (w *world) alive(spec *protocol.TurnSpec, begun protocol.TurnBegin) *actedTurn {
	return &actedTurn{w: w, spec: spec, epoch: 1, next: begun.Last + 1, frames: bytes.Clone(begun.Frames)}
}

// chunk is the turn's next append: n deltas.
func (l *actedTurn) chunk(n int) *protocol.TurnAppend {
	l.w.Helper()
	a := &protocol.TurnAppend{
		AccountID: l.spec.AccountID, TurnID: l.spec.TurnID, Owner: l.w.node, Epoch: l.epoch, First: l.next, Last: l.next + int64(n) - 1,
		State: protocol.TurnRunning, Accepts: true,
	}
	for sequence := a.First; sequence <= a.Last; sequence++ {
		a.Frames = l.event(a.Frames, sequence, &protocol.AnswerDelta{
			PartID: protocol.DerivePartID(l.spec.TurnID, 1), Delta: fmt.Sprintf("word %d \u2028\"", sequence),
		})
	}
	return a
}

func (l *actedTurn) event(frames []byte, sequence int64, payload protocol.Payload) []byte {
	l.w.Helper()
	frames, err := protocol.AppendEvent(frames, l.spec.TurnID, sequence, time.Now(), payload)
	l.w.must(err)
	return append(frames, '\n')
}

func (l *actedTurn) stored(a *protocol.TurnAppend) {
	l.frames, l.next = append(l.frames, a.Frames...), a.Last+1
}

// append stores a chunk that must be stored.
func (l *actedTurn) append(n int) {
	l.w.Helper()
	a := l.chunk(n)
	l.w.must(l.w.append(a))
	l.stored(a)
}

// append hands one batch in and waits for its answer.
func (w *world) append(a *protocol.TurnAppend) error {
	answer := make(chan error, 1)
	w.turns.Append(a, func(err error) { answer <- err })
	select {
	case err := <-answer:
		return err
	case <-time.After(patience):
		return errors.New("the append was never answered")
	}
}

// finish is the end of the turn as completed.
func (l *actedTurn) finish() *protocol.TurnFinish {
	l.w.Helper()
	usage := protocol.Usage{InputTokens: 3, OutputTokens: 5}
	return &protocol.TurnFinish{
		TurnAppend: protocol.TurnAppend{
			AccountID: l.spec.AccountID, TurnID: l.spec.TurnID, Owner: l.w.node, Epoch: l.epoch, First: l.next, Last: l.next,
			Frames: l.event(nil, l.next, &protocol.TurnFinished{
				Status: protocol.TurnCompleted, StopReason: protocol.StopEndTurn, MessageID: l.spec.AssistantMessageID, LastSequence: l.next, Usage: usage,
			}),
			State: protocol.TurnCompleted,
		},
		Spec: l.spec, StopReason: protocol.StopEndTurn, Usage: usage, ModelID: "scripted-1", Status: protocol.MessageComplete,
		Parts: []protocol.Part{{Type: protocol.PartText, PartID: protocol.DerivePartID(l.spec.TurnID, 1), Text: "answer"}},
		At:    time.Now(), MaxLiveTurns: testLiveTurns, Begin: beginTurn,
	}
}

// end finishes the turn.
func (l *actedTurn) end(change func(*protocol.TurnFinish)) *protocol.StartedTurn {
	l.w.Helper()
	finish := l.finish()
	if change != nil {
		change(finish)
	}
	started, err := l.w.turns.FinishTurn(l.w.Context(), finish)
	l.w.must(err)
	l.stored(&finish.TurnAppend)
	return started
}

// read reads the log in pages.
func (l *actedTurn) read(after int64, page int) []byte {
	l.w.Helper()
	var all []byte
	for {
		frames, last, err := l.w.turns.TurnFrames(l.w.Context(), l.spec.AccountID, l.spec.TurnID, after, page)
		l.w.must(err)
		if len(frames) == 0 {
			return all
		}
		all, after = append(all, frames...), last
	}
}
