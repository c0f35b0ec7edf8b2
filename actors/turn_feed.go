package actors

import (
	"context"
	"strings"
	"sync"
)

// maxFeed is how much unread model output one turn may hold: while its log cannot be written, the model's stream is not
// read any further.
const maxFeed = 256 << 10

// modelFeed carries one model call's output from the call's goroutine to the turn's actor. What the actor has not taken
// yet is merged, so a lagging actor finds few, large pieces; an idle one is woken for the first.
type modelFeed struct {
	call int
	wake func() // posts one message to the actor

	mu       sync.Mutex
	items    []feedItem    // guarded by mu
	bytes    int           // guarded by mu
	notified bool          // guarded by mu: a wake is on its way
	room     chan struct{} // guarded by mu: non-nil while the call waits; closed by take
}

type feedItem struct {
	kind  ChunkKind
	text  []byte // ChunkText, ChunkReasoning
	chunk ModelChunk
	over  bool // the call ended: with err, or after ChunkStop
	err   error
	hint  int  // estimated input tokens, with trimmed or as the first item
	trim  bool // older messages were left out
}

// put adds a piece; it waits while the feed is full.
func (f *modelFeed) put(ctx context.Context, item feedItem) error {
	f.mu.Lock()
	for f.bytes > maxFeed && !item.over {
		if f.room == nil {
			f.room = make(chan struct{})
		}
		room := f.room
		f.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
		f.mu.Lock()
	}
	if n := len(f.items); n > 0 && item.text != nil && f.items[n-1].text != nil && f.items[n-1].kind == item.kind {
		f.items[n-1].text = append(f.items[n-1].text, item.text...)
	} else {
		f.items = append(f.items, item)
	}
	f.bytes += len(item.text)
	notify := !f.notified
	f.notified = true
	f.mu.Unlock()
	if notify {
		f.wake()
	}
	return nil
}

// emit is what the model calls.
func (f *modelFeed) emit(ctx context.Context, chunk ModelChunk) error {
	switch chunk.Kind {
	case ChunkText, ChunkReasoning:
		if chunk.Text == "" {
			return nil
		}
		return f.put(ctx, feedItem{kind: chunk.Kind, text: []byte(storable(chunk.Text))})
	}
	return f.put(ctx, feedItem{kind: chunk.Kind, chunk: chunk})
}

// storable replaces what Postgres cannot hold as text: NUL, and bytes that are no UTF-8.
func storable(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\ufffd")
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// take hands all that is there to the actor.
func (f *modelFeed) take() []feedItem {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := f.items
	f.items, f.bytes, f.notified = nil, 0, false
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
	return items
}
