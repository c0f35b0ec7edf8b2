package cluster

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"turnstone/actors/tail"
	"turnstone/protocol"
)

// maxSources limits the sources of a node: more than all turns of a node, read on every other node of a large cluster.
const maxSources = 100_000

// relaySource sends what a turn of this node commits to a relay on another node, up to the credit that the relay gives.
type relaySource struct {
	// Set by Hub.subscribe.
	hub    *Hub
	relay  *actor.PID
	turn   protocol.TurnID
	stream *tail.Stream
	self   *actor.PID

	// Owned by receive.
	cursor tail.Cursor
	credit int
	heard  time.Time // of the last message of the relay
	sent   time.Time // of the last frames
	ended  bool
}

// more is sent to a source when its stream has more events.
type more struct{}

// Wake implements tail.Waker.
func (s *relaySource) Wake() { s.post(more{}) }

func (s *relaySource) post(message any) { s.hub.link.Post(s.self, message) }

// subscribe starts the source that a relay of another node has asked for. It is called with every message of
// kindSubscribe.
func (h *Hub) subscribe(m Message) {
	var wanted subscription
	if m.From == nil || json.Unmarshal(m.Body, &wanted) != nil {
		return
	}
	stream := h.find(wanted.AccountID, wanted.TurnID)
	if stream == nil || h.Stats().Sources >= maxSources {
		h.link.Send(m.From, nil, kindEnd, nil)
		return
	}
	s := &relaySource{
		hub: h, relay: m.From, turn: wanted.TurnID, stream: stream, cursor: tail.Cursor{After: wanted.After}, credit: min(wanted.Credit, windowBytes),
		heard: time.Now(),
	}
	started := make(chan struct{}) // closed when self is set, so that the actor does not run before
	self, err := h.link.Spawn(h.name("source"), func(message any) {
		<-started
		s.receive(message)
	})
	if err != nil {
		h.log.Error("the source of a relay was not started", zap.Error(err))
		return
	}
	s.self = self
	close(started)
	h.mu.Lock()
	h.sources[s] = struct{}{}
	h.mu.Unlock()
	s.post(more{})
}

// receive is called with every message to the source.
func (s *relaySource) receive(message any) {
	if s.ended {
		return
	}
	switch m := message.(type) {
	case more:
		s.send()
	case tick:
		switch {
		case m.now.Sub(s.heard) > lostAfter:
			s.end()
		case m.now.Sub(s.sent) > beatInterval:
			s.frames(s.cursor.After+1, s.cursor.After, nil, false)
		}
	case Message:
		s.heard = time.Now()
		switch m.Kind {
		case kindCredit:
			var c credit
			if json.Unmarshal(m.Body, &c) == nil && c.Bytes > 0 {
				s.credit = min(s.credit+c.Bytes, windowBytes)
				s.send()
			}
		case kindUnsubscribe:
			s.end()
		}
	}
}

// send sends what follows the cursor, while there is credit.
func (s *relaySource) send() {
	for s.credit > 0 {
		runs, taken := s.stream.Take(&s.cursor, s, nil)
		for i, run := range runs {
			if !s.run(run, taken == tail.TakenEnd && i == len(runs)-1) {
				s.giveUp()
				return
			}
		}
		switch taken {
		case tail.TakenSome:
		case tail.TakenCaughtUp:
			if s.sent.IsZero() { // the relay has to learn the address of the source
				s.frames(s.cursor.After+1, s.cursor.After, nil, false)
			}
			return
		case tail.TakenEnd:
			s.end()
			return
		case tail.TakenNotInMemory, tail.TakenMoved:
			s.giveUp()
			return
		}
	}
}

// run sends the events of a run, in messages of at most maxFrames. It returns false for an event that is too large: the
// readers of the relay read it from the log.
func (s *relaySource) run(run tail.Run, ended bool) bool {
	first, frames := run.First(), run.Frames()
	for len(frames) > 0 {
		size := len(frames)
		if size > maxFrames {
			if size = bytes.LastIndexByte(frames[:maxFrames], '\n') + 1; size == 0 {
				return false
			}
		}
		piece := frames[:size]
		frames = frames[size:]
		last := first + int64(bytes.Count(piece, []byte{'\n'})) - 1
		s.frames(first, last, piece, ended && len(frames) == 0)
		first = last + 1
	}
	return true
}

// frames sends events, or a beat.
func (s *relaySource) frames(first, last int64, frames []byte, ended bool) {
	body := append(append(encode(span{s.turn, first, last, ended}), '\n'), frames...)
	s.credit -= len(body)
	s.sent = time.Now()
	s.hub.link.Send(s.relay, s.self, kindFrames, body)
}

// giveUp notifies the relay that its readers must read the log.
func (s *relaySource) giveUp() {
	s.hub.link.Send(s.relay, s.self, kindEnd, nil)
	s.end()
}

func (s *relaySource) end() {
	s.ended = true
	s.stream.Leave(&s.cursor)
	s.hub.mu.Lock()
	delete(s.hub.sources, s)
	s.hub.mu.Unlock()
	s.hub.link.Stop(s.self)
}
