package http

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"turnstone/actors"
	"turnstone/protocol"
)

// stubborn is a model that begins an answer and does not stop, cancelled or not, until it is released.
type stubborn chan struct{}

func (s stubborn) Stream(_ context.Context, _ actors.ModelRequest, emit func(actors.ModelChunk) error) error {
	if err := emit(actors.ModelChunk{Kind: actors.ChunkText, Text: "So "}); err != nil {
		return err
	}
	<-s
	return emit(actors.ModelChunk{Kind: actors.ChunkStop, Stop: actors.StopEndTurn})
}

func (stubborn) Continues() bool { return true }

func (stubborn) Family() string { return "scripted" }

func (stubborn) Ready(context.Context) error { return nil }

// ending is a client with a conversation whose live turn does not end when it is cancelled.
type ending struct {
	*speaking
	config  *Config
	fenced  chan struct{}
	release func()
}

func endingTurn(t *testing.T) *ending {
	t.Helper()
	model := make(stubborn)
	e := &ending{speaking: &speaking{}, fenced: make(chan struct{}), release: sync.OnceFunc(func() { close(model) })}
	w := newWorld(t, func(c *Config) {
		e.node = nodeOn(t, c, model, nil, sync.OnceFunc(func() { close(e.fenced) }))
		c.Turns, e.config = e.node, c
	})
	t.Cleanup(e.release)
	e.client = w.client().register("ada@example.com")
	var made protocol.Conversation
	e.expect(201, "POST", "/conversations", object{}).into(t, &made)
	e.conversation = made.ConversationID.String()
	result, err := e.node.StartTurn(t.Context(), &protocol.TurnStart{
		AccountID: e.account.AccountID, ConversationID: &made.ConversationID, Input: "Hello", At: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	e.turn = result.Spec.TurnID
	e.chat(202, "queue", "later", "queued")
	return e
}

// delete deletes the conversation, with its confirmation.
func (e *ending) delete() {
	e.t.Helper()
	path := "/conversations/" + e.conversation
	first := shown{reply: e.expect(409, "DELETE", path, nil)}
	var problem struct {
		Current struct {
			Confirmation protocol.Confirmation `json:"confirmation"`
		} `json:"current"`
	}
	first.into(e.t, &problem)
	e.expect(204, "DELETE", path, nil, "X-Confirm", problem.Current.Confirmation.Token)
}

func (e *ending) state() protocol.TurnState {
	e.t.Helper()
	return query[protocol.TurnState](e.world, `select state from turns`)[0]
}

// purge erases what the conversation held.
func (e *ending) purge() {
	e.t.Helper()
	var id protocol.ConversationID
	if err := id.UnmarshalText([]byte(e.conversation)); err != nil {
		e.t.Fatal(err)
	}
	if done, err := e.DB.PurgeConversation(e.t.Context(), e.account.AccountID, id, 1000); !done || err != nil {
		e.t.Fatalf("the purge: %v, %v", done, err)
	}
	if left := query[int](e.world, `select (select count(*) from messages) + (select count(*) from turns) + (select count(*) from turn_events)`)[0]; left != 0 {
		e.t.Errorf("%d rows are left", left)
	}
}

func TestADeletionIsAnsweredWhileItsTurnStillEndsAndThePurgeWaits(t *testing.T) {
	e := endingTurn(t)
	events := "/chat/turns/" + e.turn.String() + "/events"
	stream := e.follow(events)
	e.delete()
	if state := e.state(); state != protocol.TurnCancelling {
		t.Fatalf("the turn is %s", state)
	}
	path := "/conversations/" + e.conversation
	for _, gone := range []string{path, path + "/messages", path + "/follow-ups", "/chat/turns/" + e.turn.String(), events, events + "?mode=snapshot"} {
		e.expect(404, "GET", gone, nil)
	}
	e.expect(404, "DELETE", path, nil)
	e.chat(404, "queue", "too late", "late")
	var id protocol.ConversationID
	if err := id.UnmarshalText([]byte(e.conversation)); err != nil {
		t.Fatal(err)
	}
	if _, err := e.DB.PurgeConversation(t.Context(), e.account.AccountID, id, 1000); protocol.CodeOf(err) != protocol.CodeTurnInProgress {
		t.Errorf("purging under a live turn: %v", err)
	}
	e.release()
	rest, err := io.ReadAll(stream)
	if text := string(rest); err != nil || !strings.Contains(text, `"by":"deletion"`) || !strings.Contains(text, `"status":"cancelled"`) {
		t.Errorf("the stream ended with %s, %v", rest, err)
	}
	if states := query[protocol.TurnState](e.world, `select state from turns`); len(states) != 1 || states[0] != protocol.TurnCancelled {
		t.Errorf("the turns are %v", states) // the queue did not go on
	}
	e.purge()
}

func TestTheTurnOfADeletedConversationIsEndedByTheNextNode(t *testing.T) {
	e := endingTurn(t)
	e.delete()
	dead := e.node.ID()
	nodeOn(t, e.config, make(stubborn), &dead, func() { t.Error("the next node was fenced") })
	for ended := time.Now().Add(patience); e.state() != protocol.TurnCancelled; {
		if time.Now().After(ended) {
			t.Fatalf("the turn is %s", e.state())
		}
	}
	e.purge()
	e.release()
	<-e.fenced
}
