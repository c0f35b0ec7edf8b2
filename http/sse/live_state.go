package sse

import "sync/atomic"

// liveState decides which goroutine runs a liveStream. It is used by many goroutines at once; the zero value is idle.
//
//	streamIdle ── wake: start a run ──▶ streamRunning ── wake ──▶ streamWoken
//	    ▲                                │        ▲                    │
//	    └────────── caught up ───────────┘        └── caught up: continue the run
type liveState struct{ now atomic.Int32 }

// The states of a liveStream.
const (
	streamIdle    = iota // no goroutine runs it
	streamRunning        // a goroutine writes, or will
	streamWoken          // the same, and there is more to write than it has seen
	streamStates
)

// streamEvent is what happens to a liveStream.
type streamEvent uint8

// The events.
const (
	streamWake     streamEvent = iota // there may be something to write
	streamCaughtUp                    // the goroutine that runs the stream has written all that it has seen
	streamEvents
)

// streamAction is what follows from an event.
type streamAction uint8

// The actions.
const (
	streamNothing  streamAction = iota
	streamStart                 // start a run
	streamContinue              // look again, and write
)

// streamStep is the next state, and what follows.
type streamStep struct {
	state  int32
	action streamAction
}

// streamTransitions has the step of every event in every state. Only a run can catch up, so nothing follows from that in streamIdle.
var streamTransitions = [streamStates][streamEvents]streamStep{
	streamIdle:    {streamWake: {streamRunning, streamStart}, streamCaughtUp: {streamIdle, streamNothing}},
	streamRunning: {streamWake: {streamWoken, streamNothing}, streamCaughtUp: {streamIdle, streamNothing}},
	streamWoken:   {streamWake: {streamWoken, streamNothing}, streamCaughtUp: {streamRunning, streamContinue}},
}

// begin starts the first run of a stream, which nothing else can reach yet.
func (s *liveState) begin() { s.now.Store(streamRunning) }

// on changes the state, and returns what the caller has to do.
func (s *liveState) on(e streamEvent) streamAction {
	for {
		from := s.now.Load()
		step := streamTransitions[from][e]
		if step.state == from || s.now.CompareAndSwap(from, step.state) {
			return step.action
		}
	}
}
