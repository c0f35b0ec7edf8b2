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

// maxFeeds limits the feeds of a node: more than all turns of a node, read on every other node of a large cluster.
const maxFeeds = 100_000

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

// more is sent to a feed when its stream has more events.
type more struct{}

// Wake implements tail.Waker.
func (f *relaySource) Wake() { f.post(more{}) }

func (f *relaySource) post(message any) { f.hub.link.Post(f.self, message) }

// subscribe starts the feed that a relay of another node has asked for. It is called with every message of
// kindSubscribe.
func (h *Hub) subscribe(m Message) {
	var s subscription
	if m.From == nil || json.Unmarshal(m.Body, &s) != nil {
		return
	}
	stream := h.find(s.AccountID, s.TurnID)
	if stream == nil || h.Stats().Feeds >= maxFeeds {
		h.link.Send(m.From, nil, kindEnd, nil)
		return
	}
	f := &relaySource{
		hub: h, relay: m.From, turn: s.TurnID, stream: stream, cursor: tail.Cursor{After: s.After}, credit: min(s.Credit, windowBytes),
		heard: time.Now(),
	}
	started := make(chan struct{}) // closed when self is set, so that the actor does not run before
	self, err := h.link.Spawn(h.name("feed"), func(message any) {
		<-started
		f.receive(message)
	})
	if err != nil {
		h.log.Error("a feed was not started", zap.Error(err))
		return
	}
	f.self = self
	close(started)
	h.mu.Lock()
	h.feeds[f] = struct{}{}
	h.mu.Unlock()
	f.post(more{})
}

// receive is called with every message to the feed.
func (f *relaySource) receive(message any) {
	if f.ended {
		return
	}
	switch m := message.(type) {
	case more:
		f.send()
	case tick:
		switch {
		case m.now.Sub(f.heard) > lostAfter:
			f.end()
		case m.now.Sub(f.sent) > beatInterval:
			f.frames(f.cursor.After+1, f.cursor.After, nil, false)
		}
	case Message:
		f.heard = time.Now()
		switch m.Kind {
		case kindCredit:
			var c credit
			if json.Unmarshal(m.Body, &c) == nil && c.Bytes > 0 {
				f.credit = min(f.credit+c.Bytes, windowBytes)
				f.send()
			}
		case kindUnsubscribe:
			f.end()
		}
	}
}

// send sends what follows the cursor, while there is credit.
func (f *relaySource) send() {
	for f.credit > 0 {
		runs, taken := f.stream.Take(&f.cursor, f, nil)
		for i, run := range runs {
			if !f.run(run, taken == tail.TakenEnd && i == len(runs)-1) {
				f.giveUp()
				return
			}
		}
		switch taken {
		case tail.TakenSome:
		case tail.TakenCaughtUp:
			if f.sent.IsZero() { // the relay has to learn the address of the feed
				f.frames(f.cursor.After+1, f.cursor.After, nil, false)
			}
			return
		case tail.TakenEnd:
			f.end()
			return
		case tail.TakenNotInMemory, tail.TakenMoved:
			f.giveUp()
			return
		}
	}
}

// run sends the events of a run, in messages of at most maxFrames. It returns false for an event that is too large: the
// readers of the relay read it from the log.
func (f *relaySource) run(run tail.Run, ended bool) bool {
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
		f.frames(first, last, piece, ended && len(frames) == 0)
		first = last + 1
	}
	return true
}

// frames sends events, or a beat.
func (f *relaySource) frames(first, last int64, frames []byte, ended bool) {
	body := append(append(encode(span{f.turn, first, last, ended}), '\n'), frames...)
	f.credit -= len(body)
	f.sent = time.Now()
	f.hub.link.Send(f.relay, f.self, kindFrames, body)
}

// giveUp notifies the relay that its readers must read the log.
func (f *relaySource) giveUp() {
	f.hub.link.Send(f.relay, f.self, kindEnd, nil)
	f.end()
}

func (f *relaySource) end() {
	f.ended = true
	f.stream.Leave(&f.cursor)
	f.hub.mu.Lock()
	delete(f.hub.feeds, f)
	f.hub.mu.Unlock()
	f.hub.link.Stop(f.self)
}
