package http

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"turnstone/actors/turn"
	"turnstone/http/route"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestASteeringWithTheSameIdentifierAndAnotherInputIsRefused(t *testing.T) {
	t.Parallel()
	c, _, turn := queueWorld(t)
	steer := func(status int, text string) *reply {
		return c.expect(status, "POST", "/chat/steering", route.Object{
			"type": "input", "turn_id": turn, "client_steering_id": "one", "input": []route.Object{{"type": "text", "text": text}},
		})
	}
	steer(202, "Shorter.")
	steer(202, "Shorter.")
	if refused := steer(422, "Longer."); refused.header.Get("RateLimit") == "" {
		t.Errorf("%s %v", refused.body, refused.header)
	}
}

func TestACancelDrawsFromItsReserveAndThenFromTheChatLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	w.limiter.Refuse()
	turn := protocol.NewTurnID().String()
	for _, test := range []struct {
		body route.Object
		want []string
	}{
		{route.Object{"type": "cancel", "turn_id": turn}, []string{"cancel", "chat"}},
		{route.Object{"type": "input", "turn_id": turn, "client_steering_id": "1", "input": []route.Object{{"type": "text", "text": "x"}}}, []string{"chat"}},
	} {
		w.drawn()
		resp := c.expect(429, "POST", "/chat/steering", test.body)
		buckets := w.drawn()
		if !slices.Equal(buckets, test.want) || resp.header.Get("Retry-After") == "" {
			t.Errorf("%v drew from %v, headers %v", test.body["type"], buckets, resp.header)
		}
	}
	w.limiter.BreakDown()
	w.drawn()
	c.expect(503, "POST", "/chat/steering", route.Object{"type": "cancel", "turn_id": turn})
	if drawn := w.drawn(); len(drawn) != 1 {
		t.Errorf("a request drew from %v, though the limiter cannot decide", drawn)
	}
}

func TestATurnInAMissingProjectDoesNotStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *testConfig) { liveOn(t, c) })
	c := w.client().register("ada@example.com")
	c.expect(404, "POST", "/chat", route.Object{
		"input": []route.Object{{"type": "text", "text": "x"}}, "project_id": "proj_01h2xcejqtf2nbrexx3vqjhp41",
	})
	c.expect(422, "POST", "/chat", route.Object{"input": []route.Object{{"type": "text", "text": "x"}}, "project_id": "proj_x"})
}

// streamingTurn is a client with a conversation whose live turn streams an answer until it is cancelled.
type streamingTurn struct {
	*client
	node         *testNode
	conversation string
	turn         protocol.TurnID
}

// startStreamingTurn starts such a turn. A non-nil wrap replaces the store of the turns.
func startStreamingTurn(t *testing.T, wrap func(turn.Store) turn.Store) *streamingTurn {
	t.Helper()
	s := &streamingTurn{}
	w := newWorld(t, func(c *testConfig) {
		c.wrapTurns = wrap
		liveOn(t, c)
		s.node = c.Turns.(*testNode)
	})
	s.client = w.client().register("ada@example.com")
	var made protocol.Conversation
	s.expect(201, "POST", "/conversations", route.Object{}).into(t, &made)
	s.conversation = made.ConversationID.String()
	result, err := s.node.StartTurn(t.Context(), &turnlog.Start{
		AccountID: s.account.AccountID, ConversationID: &made.ConversationID, Input: "[[script tokens=100000 interval=20ms]]", At: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.turn = result.Spec.TurnID
	return s
}

// stop cancels the turn and waits for its end.
func (s *streamingTurn) stop() {
	s.t.Helper()
	if err := s.node.CancelTurn(s.t.Context(), s.account.AccountID, s.turn, protocol.CancelledByOperator, protocol.CancelTurn); err != nil {
		s.t.Fatal(err)
	}
	reader := s.node.Follow(s.account.AccountID, s.turn, 0)
	for ended := false; !ended; {
		var err error
		if _, ended, err = reader.Next(s.t.Context(), nil); err != nil {
			s.t.Fatal(err)
		}
	}
}

// chat sends a message to the busy conversation, with an idempotency key, and expects a status.
func (s *streamingTurn) chat(status int, busy, text, key string) *reply {
	s.t.Helper()
	body := route.Object{"conversation_id": s.conversation, "input": []route.Object{{"type": "text", "text": text}}, "if_busy": busy}
	return s.expect(status, "POST", "/chat", body, "Idempotency-Key", key)
}

func TestARepeatedSteerReturnsItsReceipt(t *testing.T) {
	t.Parallel()
	s := startStreamingTurn(t, nil)
	steered, queued := s.chat(202, "steer", "shorter", "steered"), s.chat(202, "queue", "later", "queued")
	var first protocol.SteeringReceipt
	steered.into(t, &first)
	if first.TurnID != s.turn || first.Replayed || steered.header.Get(replayedField) != "" || queued.header.Get(replayedField) != "" {
		t.Fatalf("the first receipts are %s %v and %s %v", steered.body, steered.header, queued.body, queued.header)
	}
	repeat := func(when string) {
		t.Helper()
		s.drawn()
		one, other := s.chat(202, "steer", "shorter", "steered"), s.chat(202, "queue", "later", "queued")
		if string(one.body) != string(steered.body) || string(other.body) != string(queued.body) {
			t.Errorf("%s: %s and %s", when, one.body, other.body)
		}
		if one.header.Get(replayedField) != "true" || other.header.Get(replayedField) != "true" {
			t.Errorf("%s: the repeats are not marked", when)
		}
		if drawn := s.drawn(); len(drawn) != 0 {
			t.Errorf("%s: drew from %v", when, drawn)
		}
		if got := s.chat(422, "steer", "longer", "steered"); got.Code != protocol.CodeIdempotencyMismatch {
			t.Errorf("%s, another body: %s", when, got.body)
		}
	}
	repeat("while the turn is live")
	s.stop()
	repeat("after its end")
	for s.Server.streams.Acquire(s.account.AccountID) == nil {
	}
	repeat("over the stream limit")
	if err := s.node.Drain(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	repeat("while the node drains")
	if turns := query[int](s.world, `select count(*) from turns`); turns[0] != 1 {
		t.Errorf("there are %d turns", turns[0])
	}
}

func TestTheKeyOfASteeredChatIsNoNameOfAnInput(t *testing.T) {
	t.Parallel()
	s := startStreamingTurn(t, nil)
	defer s.stop()
	steer := func(name, text string) (receipt protocol.SteeringReceipt) {
		t.Helper()
		s.expect(202, "POST", "/chat/steering", route.Object{
			"type": "input", "turn_id": s.turn, "client_steering_id": name, "input": []route.Object{{"type": "text", "text": text}},
		}).into(t, &receipt)
		return receipt
	}
	var chat protocol.SteeringReceipt
	s.chat(202, "steer", "shorter", "chat-first").into(t, &chat)
	if other := steer("chat-first", "shorter"); other.Replayed || other.SteeringID == chat.SteeringID {
		t.Errorf("an input with the name of a key: %+v after %+v", other, chat)
	}
	s.chat(202, "steer", "shorter", "other-text").into(t, &chat)
	steer("other-text", "longer")
	named := steer("name-first", "shorter")
	s.chat(202, "steer", "shorter", "name-first").into(t, &chat)
	if chat.SteeringID == named.SteeringID {
		t.Errorf("a steered chat with the name of an input: %+v after %+v", chat, named)
	}
}

// endedBeforeCommand is a store that runs end before its caller sends the first input to a live turn.
type endedBeforeCommand struct {
	turn.Store
	end func()
}

func (e *endedBeforeCommand) StartTurn(ctx context.Context, start *turnlog.Start, on turnlog.Runner) (*turnlog.StartResult, error) {
	result, err := e.Store.StartTurn(ctx, start, on)
	if err == nil && result.Busy != nil && e.end != nil {
		e.end()
		e.end = nil
	}
	return result, err
}

func TestASteerThatMeetsTheEndOfItsTurnStartsOneTurn(t *testing.T) {
	t.Parallel()
	ending := &endedBeforeCommand{}
	s := startStreamingTurn(t, func(of turn.Store) turn.Store {
		ending.Store = of
		return ending
	})
	ending.end = s.stop
	first := s.chat(200, "steer", "Hello", "k")
	if first.header.Get("X-Turn-Id") == s.turn.String() || !strings.Contains(string(first.body), "turn.finished") {
		t.Fatalf("headers of the first request: %v", first.header)
	}
	again := s.chat(200, "steer", "Hello", "k")
	if again.header.Get(replayedField) != "true" || again.header.Get("X-Turn-Id") != first.header.Get("X-Turn-Id") || string(again.body) != string(first.body) {
		t.Errorf("headers of the repeat: %v", again.header)
	}
}
