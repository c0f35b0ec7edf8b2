package http

import (
	"slices"
	"strings"
	"testing"

	"turnstone/protocol"
)

func TestACancelDrawsFromItsReserveAndThenFromTheChatLimit(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	w.limiter.refuse()
	turn := protocol.NewTurnID().String()
	for _, test := range []struct {
		body object
		want []string
	}{
		{object{"type": "cancel", "turn_id": turn}, []string{"cancel", "chat"}},
		{object{"type": "input", "turn_id": turn, "client_steering_id": "1", "input": []object{{"type": "text", "text": "x"}}}, []string{"chat"}},
	} {
		w.limiter.drawn = nil
		answer := c.expect(429, "POST", "/chat/steering", test.body)
		var buckets []string
		for _, drawn := range w.limiter.drawn {
			name, _, _ := strings.Cut(drawn, " ")
			buckets = append(buckets, name)
		}
		if !slices.Equal(buckets, test.want) || answer.header.Get("Retry-After") == "" {
			t.Errorf("%v drew from %v, answer %v", test.body["type"], buckets, answer.header)
		}
	}
	w.limiter.breakDown()
	w.limiter.drawn = nil
	c.expect(503, "POST", "/chat/steering", object{"type": "cancel", "turn_id": turn})
	if len(w.limiter.drawn) != 1 {
		t.Errorf("a limiter that cannot decide was asked %d times", len(w.limiter.drawn))
	}
}

func TestATurnInAProjectThatIsNotThereDoesNotBegin(t *testing.T) {
	w := newWorld(t)
	c := w.client().register("ada@example.com")
	c.expect(404, "POST", "/chat", object{
		"input": []object{{"type": "text", "text": "x"}}, "project_id": "proj_01h2xcejqtf2nbrexx3vqjhp41",
	})
	c.expect(422, "POST", "/chat", object{"input": []object{{"type": "text", "text": "x"}}, "project_id": "proj_x"})
}
