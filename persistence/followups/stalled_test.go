package followups_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"turnstone/persistence/storetest"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

func TestStalledQueuesAreStarted(t *testing.T) {
	w := storetest.NewWorld(t)
	turn := w.Start(w.Request(nil, "one"))
	start := w.Request(&turn.Spec.ConversationID, "two")
	start.IfBusy = protocol.BusyQueue
	_, err := w.Try(start)
	w.Must(err)
	w.Runner.MaxLiveTurns = 0
	if started := turn.End(nil); started != nil {
		t.Fatal("a turn started over the limit")
	}
	w.Runner.MaxLiveTurns = storetest.MaxLiveTurns
	w.Database.Admin(t, `update follow_ups set created_at = now() - interval '1 minute'`)
	var sweeps sync.WaitGroup
	begun := make(chan []turnlog.Started, 4)
	for range cap(begun) {
		sweeps.Go(func() {
			started, err := w.DB.FollowUps.StartStalledQueues(context.Background(), w.Runner, 10)
			if err != nil {
				t.Error(err)
			}
			begun <- started
		})
	}
	sweeps.Wait()
	total := 0
	for range cap(begun) {
		for _, s := range <-begun {
			total++
			if s.Spec.Input != "two" || *s.Spec.ParentMessageID != turn.Spec.AssistantMessageID {
				t.Errorf("started %+v", s.Spec)
			}
		}
	}
	if total != 1 {
		t.Errorf("%d turns started", total)
	}
}

func TestQueueSweepsAreBoundedAndMissNoQueue(t *testing.T) {
	w := storetest.NewWorld(t)
	live := w.Start(w.Request(nil, "hello"))
	waiting := live.Spec.ConversationID
	w.Database.Admin(t, `
		insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position, created_at)
		select $1, gen_random_uuid(), $2, 'queued', 'x', n, now() - interval '1 day' from generate_series(1, 2500) n`, w.Account, waiting)
	idle := w.Start(w.Request(nil, "hello"))
	idle.End(nil)
	for range 2 {
		w.Database.Admin(t, `
			insert into follow_ups (account_id, follow_up_id, conversation_id, state, content, position, created_at)
			values ($1, gen_random_uuid(), $2, 'queued', 'x', 1, now() - interval '1 hour')`, w.Account, idle.Spec.ConversationID)
		var begun []int
		for range 4 {
			started, err := w.DB.FollowUps.StartStalledQueues(t.Context(), w.Runner, 10)
			w.Must(err)
			begun = append(begun, len(started))
			for _, turn := range started {
				w.Simulate(turn.Spec, turn.Begin).End(nil)
			}
		}
		if fmt.Sprint(begun) != "[0 0 1 0]" {
			t.Errorf("sweeps started %v turns", begun)
		}
		// The fourth sweep started again with the oldest queue; two more reach the end.
		for range 2 {
			_, err := w.DB.FollowUps.StartStalledQueues(t.Context(), w.Runner, 10)
			w.Must(err)
		}
	}
}
