package http

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/actors/llm"
	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/idtest"
	"turnstone/protocol/turnlog"
)

// uncancellableModel is a model that starts an answer and, against the contract of llm.Model, ignores cancellation. It stops when the
// channel is closed.
type uncancellableModel chan struct{}

func (s uncancellableModel) Stream(_ context.Context, _ llm.Request, emit func(llm.Chunk) error) error {
	if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "So "}); err != nil {
		return err
	}
	<-s
	return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
}

func (uncancellableModel) Continues() bool { return true }

func (uncancellableModel) Family() string { return "scripted" }

func (uncancellableModel) Ready(context.Context) error { return nil }

// uncancellableTurn is a client with a conversation whose live turn keeps running after it is cancelled, until release
// is called.
type uncancellableTurn struct {
	*streamingTurn
	config  *testConfig
	fenced  chan struct{} // closed when the node is fenced
	release func()        // ends the model's answer
}

// newUncancellableTurn starts the turn and adds one follow-up to the queue of the conversation.
func newUncancellableTurn(t *testing.T) *uncancellableTurn {
	t.Helper()
	model := make(uncancellableModel)
	e := &uncancellableTurn{streamingTurn: &streamingTurn{}, fenced: make(chan struct{}), release: sync.OnceFunc(func() { close(model) })}
	w := newWorld(t, func(c *testConfig) {
		e.node = nodeOn(t, c, model, nil, sync.OnceFunc(func() { close(e.fenced) }))
		c.Turns, e.config = e.node, c
	})
	t.Cleanup(e.release)
	e.client = w.client().register("ada@example.com")
	var made protocol.Conversation
	e.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	e.conversation = made.ConversationID.String()
	result, err := e.node.StartTurn(t.Context(), &turnlog.Start{
		AccountID: e.account.AccountID, ConversationID: &made.ConversationID, Input: "Hello", At: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.turn = result.Spec.TurnID
	e.chat(202, "queue", "later", "queued")
	return e
}

// delete deletes the conversation: it repeats the refused request with the confirmation token of the 409.
func (e *uncancellableTurn) delete() {
	e.t.Helper()
	path := "/conversations/" + e.conversation
	first := decodedReply{reply: e.expect(409, "DELETE", path, nil)}
	var problem struct {
		Current struct {
			Confirmation protocol.Confirmation `json:"confirmation"`
		} `json:"current"`
	}
	first.into(e.t, &problem)
	e.expect(204, "DELETE", path, nil, "X-Confirm", problem.Current.Confirmation.Token)
}

func (e *uncancellableTurn) state() protocol.TurnState {
	e.t.Helper()
	return query[protocol.TurnState](e.world, `select state from turns`)[0]
}

// purge purges the conversation and checks that no message, turn or turn event is left.
func (e *uncancellableTurn) purge() {
	e.t.Helper()
	id := idtest.Parse[protocol.ConversationID](e.t, e.conversation)
	if done, err := e.DB.Conversations.PurgeConversation(e.t.Context(), e.account.AccountID, id, 1000); !done || err != nil {
		e.t.Fatalf("purging the conversation: done %v, error %v", done, err)
	}
	if left := query[int](e.world, `select (select count(*) from messages) + (select count(*) from turns) + (select count(*) from turn_events)`)[0]; left != 0 {
		e.t.Errorf("%d messages, turns and turn events are left", left)
	}
}

func TestADeletionDoesNotWaitForItsTurnButThePurgeDoes(t *testing.T) {
	t.Parallel()
	e := newUncancellableTurn(t)
	events := "/chat/turns/" + e.turn.String() + "/events"
	stream := e.follow(events)
	e.delete()
	if state := e.state(); state != protocol.TurnCancelling {
		t.Fatalf("the turn is %s", state)
	}
	path := "/conversations/" + e.conversation
	for _, deleted := range []string{path, path + "/messages", path + "/follow-ups", "/chat/turns/" + e.turn.String(), events, events + "?mode=snapshot"} {
		e.expect(404, "GET", deleted, nil)
	}
	e.expect(404, "DELETE", path, nil)
	e.chat(404, "queue", "too late", "late")
	id := idtest.Parse[protocol.ConversationID](t, e.conversation)
	if _, err := e.DB.Conversations.PurgeConversation(t.Context(), e.account.AccountID, id, 1000); protocol.CodeOf(err) != protocol.CodeTurnInProgress {
		t.Errorf("purging a conversation with a live turn: %v", err)
	}
	e.release()
	rest, err := io.ReadAll(stream)
	if text := string(rest); err != nil || !strings.Contains(text, `"by":"deletion"`) || !strings.Contains(text, `"status":"cancelled"`) {
		t.Errorf("the stream ended with %s, %v", rest, err)
	}
	if states := query[protocol.TurnState](e.world, `select state from turns`); len(states) != 1 || states[0] != protocol.TurnCancelled {
		t.Errorf("the turns are %v", states) // no turn was started from the follow-up
	}
	e.purge()
}

func TestTheTurnOfADeletedConversationIsEndedByTheNextNode(t *testing.T) {
	t.Parallel()
	e := newUncancellableTurn(t)
	e.delete()
	dead := e.node.ID()
	nodeOn(t, e.config, make(uncancellableModel), &dead, func() { t.Error("the next node was fenced") })
	for deadline := time.Now().Add(testTimeout); e.state() != protocol.TurnCancelled; {
		if time.Now().After(deadline) {
			t.Fatalf("the turn is %s", e.state())
		}
	}
	e.purge()
	e.release()
	<-e.fenced
}
