package feed

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/tail"
	"turnstone/persistence/feed"
	"turnstone/protocol"
)

const (
	// pollInterval is the interval at which the end of the feed is read while the node has readers: about the longest
	// delay of an item. Notifications of Postgres would be faster, but every transaction that sends one holds a lock of the
	// whole server until its commit is on disk, so transactions that change something would commit one after the other.
	pollInterval = 200 * time.Millisecond
	tailItems    = 2000 // of one read of the end
	recentItems  = 256  // of each account, kept for its readers
	pageItems    = 500  // of one read from the store, about 100 kB
)

// Store reads the feed. persistence/feed documents the methods.
type Store interface {
	Read(ctx context.Context, account protocol.AccountID, after feed.Position, limit int) (*feed.Page, error)
	Tail(ctx context.Context, after feed.Position, limit int) (*feed.Page, error)
}

// Hub wakes the readers of a node when their accounts have new items. Its methods may be called from any goroutine.
//
// Order: items in the order of their positions, each once. Resume and loss: a reader that is behind the items that the hub keeps reads
// the store. Slow store: readers wait, and their streams stay open; a failing store ends no stream. Slow reader: it delays no other.
// Close: when Run ends, every stream ends, and clients resume elsewhere.
type Hub struct {
	// Set by NewHub.
	store  Store
	away   func() bool
	log    *zap.Logger
	joined tail.Signal // there may be readers

	mu       sync.Mutex
	accounts map[protocol.AccountID]*recent // guarded by mu; those with readers
	at       feed.Position                  // guarded by mu; the items up to here were read, if there are readers
	round    int                            // guarded by mu; counts how often the first reader came
	closed   bool                           // guarded by mu; Run has ended
}

// recent has the newest items of an account.
type recent struct {
	items   []feed.Item // all items after start
	start   feed.Position
	readers int
	waiting map[*Reader]tail.Waker
}

// NewHub returns a Hub. away reports whether readers have to go to another node: this one drains, or is isolated.
func NewHub(store Store, away func() bool, log *zap.Logger) *Hub {
	return &Hub{store: store, away: away, log: log, joined: make(tail.Signal, 1), accounts: map[protocol.AccountID]*recent{}}
}

// Run reads the end of the feed until ctx ends, as long as there are readers. Then it ends all streams.
func (h *Hub) Run(ctx context.Context) {
	defer h.close()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for failing := false; ; {
		again, err := h.poll(ctx)
		if failed := err != nil && ctx.Err() == nil; failed != failing {
			failing = failed
			h.log.Warn("reading the end of the account feeds", zap.Bool("failing", failing), zap.Error(err))
		}
		next := ticker.C
		if !again {
			next = nil // until there are readers
		}
		select {
		case <-next:
		case <-h.joined:
		case <-ctx.Done():
			return
		}
	}
}

// poll reads the end of the feed once and wakes the readers of the accounts that have new items. It returns false if
// there are no readers.
func (h *Hub) poll(ctx context.Context) (again bool, err error) {
	for {
		h.mu.Lock()
		at, round := h.at, h.round
		if again = len(h.accounts) > 0; again && h.away() {
			h.wakeAll()
		}
		h.mu.Unlock()
		if !again {
			return false, nil
		}
		page, err := h.store.Tail(ctx, at, tailItems)
		if err != nil {
			return true, err // the next call reads the same items
		}
		h.publish(page, round)
		if !page.More {
			return true, nil
		}
	}
}

// publish adds what Tail returned to the accounts that have readers.
func (h *Hub) publish(page *feed.Page, round int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if round != h.round { // the readers have left, and others have come
		return
	}
	h.at = page.End
	if page.Gap { // the hub itself was away for too long: the readers look for themselves
		for _, r := range h.accounts {
			r.items, r.start = nil, page.End
		}
		h.wakeAll()
		return
	}
	for i := range page.Items {
		item := &page.Items[i]
		r := h.accounts[item.Account]
		if r == nil {
			continue
		}
		if len(r.items) == recentItems {
			r.start = r.items[0].Position
			r.items = r.items[1:]
		}
		r.items = append(r.items, *item)
		r.wake()
	}
}

func (h *Hub) wakeAll() {
	for _, r := range h.accounts {
		r.wake()
	}
}

// wake wakes the waiting readers. Hub.mu must be held.
func (r *recent) wake() {
	for reader, waker := range r.waiting {
		waker.Wake()
		delete(r.waiting, reader)
	}
}

// close ends all streams, and those that are opened later.
func (h *Hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.wakeAll()
}

// Away reports whether the node serves no feeds now.
func (h *Hub) Away() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moved()
}

// moved reports whether readers must reconnect to another node. mu must be held.
func (h *Hub) moved() bool { return h.closed || h.away() }

// Follow returns a reader that continues after a position. present is the end of the feed, from a read before. encode
// is for the items that the reader returns.
func (h *Hub) Follow(account protocol.AccountID, after, present feed.Position, encode Encoder) *Reader {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.accounts) == 0 {
		h.at = present
		h.round++
	}
	r := h.accounts[account]
	if r == nil {
		r = &recent{start: h.at, waiting: map[*Reader]tail.Waker{}}
		h.accounts[account] = r
	}
	r.readers++
	h.joined.Wake()
	return &Reader{hub: h, account: account, recent: r, cursor: after, encode: encode}
}

func (h *Hub) leave(reader *Reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := reader.recent
	delete(r.waiting, reader)
	if r.readers--; r.readers == 0 {
		delete(h.accounts, reader.account)
	}
}
