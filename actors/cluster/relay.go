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

// Relay receives what a turn of another node commits, and publishes it for the readers of this node. The comment of the package
// describes its order, loss and end. It is an actor; its exported methods may be called from any goroutine.
type Relay struct {
	// Set by Hub.start.
	hub     *Hub
	account protocol.AccountID
	turn    protocol.TurnID
	owner   string
	epoch   int32
	stream  *tail.Stream
	self    *actor.PID

	readers int       // guarded by hub.mu
	left    time.Time // guarded by hub.mu: when the last reader left

	// Owned by receive.
	last   int64
	source *actor.PID // nil before its first message
	heard  time.Time  // of the last message of the source
	sent   time.Time  // of the last credit
	debt   int        // bytes that were published and not credited yet
	ended  bool
}

// giveUp ends a relay.
type giveUp struct{}

// Stream returns the stream to read.
func (r *Relay) Stream() *tail.Stream { return r.stream }

// start starts a relay and subscribes to the turn. It returns nil if that fails. The caller holds mu.
func (h *Hub) start(account protocol.AccountID, turn protocol.TurnID, owner string, epoch int32, after int64) *Relay {
	r := &Relay{
		hub: h, account: account, turn: turn, owner: owner, epoch: epoch, stream: tail.New(after), last: after,
		heard: time.Now(), sent: time.Now(),
	}
	self, err := h.link.Spawn(h.name("relay"), r.receive)
	if err != nil {
		h.log.Error("a relay was not started", zap.Error(err))
		return nil
	}
	r.self = self
	h.link.Send(h.link.Gateway(owner), self, kindSubscribe, encode(subscription{account, turn, after, windowBytes}))
	return r
}

// post sends a message to the relay's actor.
func (r *Relay) post(message any) { r.hub.link.Post(r.self, message) }

// receive is called with every message to the relay.
func (r *Relay) receive(message any) {
	if r.ended {
		return
	}
	switch m := message.(type) {
	case giveUp:
		r.end("given up")
	case tick:
		r.tick(m)
	case Message:
		r.heard = time.Now()
		switch m.Kind {
		case kindFrames:
			r.source = m.From
			r.frames(m.Body)
		case kindEnd:
			r.end("the owner does not run the turn, or has more than its memory")
		}
	}
}

func (r *Relay) tick(t tick) {
	switch {
	case t.unread:
		r.end("no reader")
	case t.now.Sub(r.heard) > silentAfter:
		r.end("the owner is silent")
	case r.source != nil && t.now.Sub(r.sent) > beatInterval:
		r.credit()
	}
}

// frames publishes events. The first line of body is a span.
func (r *Relay) frames(body []byte) {
	head, frames, _ := bytes.Cut(body, []byte{'\n'})
	var s span
	if err := json.Unmarshal(head, &s); err != nil {
		r.end("unreadable frames")
		return
	}
	if s.TurnID != r.turn && s.TurnID != (protocol.TurnID{}) {
		r.end("frames of another turn")
		return
	}
	if s.First > r.last+1 {
		r.end("a message was lost")
		return
	}
	if s.Last > r.last {
		frames = protocol.SkipFrames(frames, r.last+1-s.First)
		r.stream.Publish(r.last+1, s.Last, frames, s.Ended)
		r.last = s.Last
	}
	if r.debt += len(body); r.debt >= windowBytes/4 {
		r.credit()
	}
	if s.Ended {
		r.end("the turn has ended")
	}
}

// credit lets the source send as many bytes more as were published.
func (r *Relay) credit() {
	r.hub.link.Send(r.source, r.self, kindCredit, encode(credit{r.debt}))
	r.debt, r.sent = 0, time.Now()
}

// end ends the relay. Its readers look the turn up again, unless the turn has ended.
func (r *Relay) end(why string) {
	r.ended = true
	r.hub.remove(r)
	r.stream.Abandon()
	if r.source != nil {
		r.hub.link.Send(r.source, r.self, kindUnsubscribe, nil)
	}
	r.hub.log.Debug("relay ended", zap.Stringer("turn", r.turn), zap.String("owner", r.owner), zap.Int64("sequence", r.last), zap.String("cause", why))
	r.hub.link.Stop(r.self)
}

// remove removes a relay that has ended.
func (h *Hub) remove(r *Relay) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.relays[r.turn] == r {
		delete(h.relays, r.turn)
		h.retry[r.turn] = time.Now().Add(retryPause)
	}
}
