package sse

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestEveryEventInEveryStateOfALiveStream(t *testing.T) {
	for from, events := range streamTransitions {
		for e, want := range events {
			var s liveState
			s.now.Store(int32(from))
			if action := s.on(streamEvent(e)); action != want.action || s.now.Load() != want.state {
				t.Errorf("event %d in state %d: action %d and state %d, want %+v", e, from, action, s.now.Load(), want)
			}
			if starts := want.action == streamStart; starts != (from == streamIdle && want.state != streamIdle) {
				t.Errorf("event %d in state %d: %+v; a run starts exactly when the stream leaves streamIdle", e, from, want)
			}
			if streamEvent(e) == streamWake && want.state == streamIdle {
				t.Errorf("a wake in state %d is lost", from)
			}
		}
	}
}

// Every wake is followed by a look at what it announces, by one goroutine at a time.
func TestNoWakeOfALiveStreamIsLost(t *testing.T) {
	const wakers, wakes = 8, 2000
	var s liveState
	var announced, running atomic.Int64
	var seen int64 // owned by the run
	var all sync.WaitGroup
	run := func() {
		for {
			if running.Add(1) != 1 {
				t.Error("two runs at once")
			}
			seen = announced.Load()
			running.Add(-1)
			if s.on(streamCaughtUp) != streamContinue {
				return
			}
		}
	}
	for range wakers {
		all.Go(func() {
			for range wakes {
				announced.Add(1)
				if s.on(streamWake) == streamStart {
					run()
				}
			}
		})
	}
	all.Wait()
	if seen != wakers*wakes {
		t.Errorf("%d of %d wakes were seen", seen, wakers*wakes)
	}
}
