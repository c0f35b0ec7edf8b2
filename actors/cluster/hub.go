package cluster

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/tail"
	"turnstone/protocol"
)

// The timing of relays and sources.
const (
	tickInterval = 500 * time.Millisecond
	beatInterval = 700 * time.Millisecond // after this long without frames or credit, a beat is sent
	silentAfter  = 2 * time.Second        // then a relay gives up its source; readers read the log
	lostAfter    = 5 * time.Second        // then a source gives up its relay
	unreadFor    = 5 * time.Second        // then a relay without readers ends
	retryPause   = 250 * time.Millisecond // between two relays of the same turn; in the meantime, readers read the log
	windowBytes  = 256 << 10              // that a source may send before the relay has published them
	maxFrames    = 128 << 10              // bytes in one message
)

// Find returns the stream of a turn that runs on this node; nil if it does not, or belongs to another account.
type Find func(account protocol.AccountID, turn protocol.TurnID) *tail.Stream

// Hub has the relays and the sources of a node, with the order, loss and end that the comment of the package describes. Its methods may
// be called from any goroutine.
type Hub struct {
	// Set by NewHub.
	link *Link
	find Find
	log  *zap.Logger
	// process is part of the names of this node's actors. A node that restarts has the address of its predecessor; if it had
	// the names as well, it would receive what its peers still send to the predecessor: events of other turns, of any account.
	process string

	names atomic.Int64 // for the names of actors

	mu      sync.Mutex
	relays  map[protocol.TurnID]*Relay    // guarded by mu
	sources map[*relaySource]struct{}     // guarded by mu
	retry   map[protocol.TurnID]time.Time // guarded by mu: when the next relay of a turn may start
	closed  bool                          // guarded by mu: no relay starts any more
}

// NewHub returns a hub without relays. It is called before link is started.
func NewHub(link *Link, find Find, log *zap.Logger) *Hub {
	h := &Hub{
		link: link, find: find, log: log.Named("relay"), process: rand.Text(), relays: map[protocol.TurnID]*Relay{},
		sources: map[*relaySource]struct{}{}, retry: map[protocol.TurnID]time.Time{},
	}
	link.Handle(kindSubscribe, h.subscribe)
	return h
}

// Run keeps relays and sources in order until ctx ends, and then ends all of them.
func (h *Hub) Run(ctx context.Context) {
	ticker := time.NewTicker(tickInterval)
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			h.tick(now)
		case <-ctx.Done():
			h.Close()
			h.tick(time.Now())
			return
		}
	}
}

// tick lets every relay and source check its time.
func (h *Hub) tick(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for turn, at := range h.retry {
		if now.After(at) {
			delete(h.retry, turn)
		}
	}
	for _, r := range h.relays {
		r.post(tick{now, r.readers == 0 && now.Sub(r.left) > unreadFor})
	}
	for s := range h.sources {
		s.post(tick{now: now})
	}
}

// tick is sent to every relay and source. unread means that a relay has had no reader for a while.
type tick struct {
	now    time.Time
	unread bool
}

// Follow returns the relay of a turn that runs on the node at owner, for one more reader, who must call Leave. It starts
// a relay after the sequence if there is none. It returns nil while a relay is not possible: the reader reads the log.
func (h *Hub) Follow(account protocol.AccountID, turn protocol.TurnID, owner string, epoch int32, after int64) *Relay {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || owner == "" || owner == h.link.Address() {
		return nil
	}
	r := h.relays[turn]
	if r != nil && (r.epoch < epoch || r.owner != owner) { // the turn has moved since
		h.abandonLocked(r)
		r = nil
	}
	if r != nil && r.account != account || r == nil && h.retry[turn].After(time.Now()) {
		return nil
	}
	if r == nil {
		if r = h.start(account, turn, owner, epoch, after); r == nil {
			return nil
		}
		h.relays[turn] = r
	}
	r.readers++
	return r
}

// Moved ends the relay of a turn that now runs on the node at owner, unless the relay follows it there. Its readers then
// look the turn up. Without this, a relay that waits for a lost owner ends only after silentAfter.
func (h *Hub) Moved(turn protocol.TurnID, owner string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.relays[turn]; r != nil && r.owner != owner {
		h.abandonLocked(r)
	}
	delete(h.retry, turn)
}

// abandonLocked ends a relay and makes room for the next one of its turn.
func (h *Hub) abandonLocked(r *Relay) {
	r.post(giveUp{})
	delete(h.relays, r.turn)
}

// Leave ends the reading of one reader.
func (h *Hub) Leave(r *Relay) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.readers--
	r.left = time.Now()
}

// Close ends all relays, and starts none any more. Sources continue until their turns end.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, r := range h.relays {
		r.post(giveUp{})
	}
}
