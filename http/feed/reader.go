package feed

import (
	"context"
	"time"

	"turnstone/actors/tail"
	"turnstone/persistence/feed"
	"turnstone/protocol"
)

// Encoder appends items to b as server-sent events.
type Encoder func(b []byte, items []feed.Item) ([]byte, error)

// Reader follows the feed of an account. It implements sse.Reader; its events need no further rendering.
//
// Order: that of the items' positions. Resume: after the position of any event. Loss: none within the retention; an older
// cursor gets feed.reset. Of several items about one resource that are read at once, only the last one is sent. Slow
// reader: it does not delay others, and reads what it has missed from the store, a page at a time. Close: TakenMoved when
// the node drains or stops. Concurrency: used by one goroutine at a time, which must call Leave once, at the end.
type Reader struct {
	hub     *Hub
	account protocol.AccountID
	recent  *recent // guarded by hub.mu
	encode  Encoder
	cursor  feed.Position // of the goroutine that uses the reader; it changes with hub.mu held
}

// Take appends no runs: the items of a feed are few, and Next returns them. TakenNotInMemory means that there are some.
func (r *Reader) Take(waker tail.Waker, into []tail.Run) ([]tail.Run, tail.Taken) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	switch {
	case r.hub.moved():
		return into, tail.TakenMoved
	case r.behind():
		return into, tail.TakenNotInMemory
	}
	r.recent.waiting[r] = waker
	return into, tail.TakenCaughtUp
}

// behind reports whether there are items after the cursor, or may be. hub.mu must be held.
func (r *Reader) behind() bool {
	items := r.recent.items
	return r.cursor.Before(r.recent.start) || len(items) > 0 && r.cursor.Before(items[len(items)-1].Position)
}

// Next returns the events of the next items; tail.ErrNone if there are none. It does not wait for more.
func (r *Reader) Next(ctx context.Context, _ <-chan time.Time) (events []byte, ended bool, err error) {
	items, inMemory := r.fromHub()
	if !inMemory {
		page, err := r.hub.store.Read(ctx, r.account, r.cursor, pageItems)
		if err != nil {
			return nil, false, err
		}
		if items = page.Items; page.Gap {
			items = []feed.Item{reset(page.End)}
		}
		r.advance(page.End)
	}
	if len(items) == 0 {
		return nil, false, tail.ErrNone
	}
	if events, err = r.encode(nil, feed.Latest(items)); err != nil {
		return nil, false, err
	}
	return events, false, nil
}

// fromHub returns the items after the cursor, and moves the cursor; false if the Hub does not have all of them.
func (r *Reader) fromHub() ([]feed.Item, bool) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	if r.cursor.Before(r.recent.start) {
		return nil, false
	}
	items := r.recent.items
	for len(items) > 0 && !r.cursor.Before(items[0].Position) {
		items = items[1:]
	}
	if len(items) > 0 {
		r.cursor = items[len(items)-1].Position
	}
	return items[:len(items):len(items)], true
}

func (r *Reader) advance(to feed.Position) {
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	r.cursor = to
}

// Leave ends the reading: the waker is not notified any more.
func (r *Reader) Leave() { r.hub.leave(r) }
