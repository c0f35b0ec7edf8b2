package actors

import (
	"context"
	"strings"
	"sync"
	"time"
)

// maxFeed is how much unread model output one turn may hold: while its log cannot be written, the model's stream is not
// read any further.
const maxFeed = 256 << 10

// modelFeed carries one model call's output from the call's goroutine to the turn's actor. What the actor has not taken
// yet is merged, so a lagging actor finds few, large pieces; an idle one is woken for the first.
type modelFeed struct {
	call int
	wake func() // posts one message to the actor

	trimmed bool // owned by the call: the next output is to say that older messages were left out

	mu       sync.Mutex
	items    []feedItem    // guarded by mu
	spare    []feedItem    // guarded by mu: taken before, and done with by the next take
	bytes    int           // guarded by mu
	notified bool          // guarded by mu: a wake is on its way
	held     bool          // guarded by mu: the actor decides nothing now, and will look by itself
	resting  bool          // guarded by mu: held, with text that may wait for a moment; see rest
	hasten   func()        // guarded by mu: non-nil while more text shortens the rest, from early on
	early    time.Time     // guarded by mu
	room     chan struct{} // guarded by mu: non-nil while the call waits; closed by take
}

type feedItem struct {
	kind  ChunkKind
	text  string      // ChunkText, ChunkReasoning
	more  []byte      // the whole text, once pieces were merged
	chunk *ModelChunk // of another kind
	over  bool        // the call ended: with err, or after ChunkStop
	err   error
	hint  int  // estimated input tokens, as the first item
	trim  bool // older messages were left out; with the first output of the model
}

func (i *feedItem) words() string {
	if i.more != nil {
		return string(i.more)
	}
	return i.text
}

func (i *feedItem) join(text string) {
	if i.more == nil {
		i.more = append(make([]byte, 0, 2*(len(i.text)+len(text))), i.text...)
	}
	i.more = append(i.more, text...)
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
	if n := len(f.items); n > 0 && item.text != "" && f.items[n-1].text != "" && f.items[n-1].kind == item.kind {
		f.items[n-1].join(item.text)
	} else {
		f.items = append(f.items, item)
	}
	f.bytes += len(item.text)
	notify := !f.notified && (!f.held || f.resting && !f.mayRest())
	f.notified = f.notified || notify
	hasten := f.hasten
	if hasten != nil && time.Now().Before(f.early) {
		hasten = nil
	} else {
		f.hasten = nil
	}
	f.mu.Unlock()
	switch {
	case notify:
		f.wake()
	case hasten != nil:
		hasten()
	}
	return nil
}

// emit is what the model calls.
func (f *modelFeed) emit(ctx context.Context, chunk ModelChunk) error {
	item := feedItem{kind: chunk.Kind, trim: f.trimmed}
	switch chunk.Kind {
	case ChunkText, ChunkReasoning:
		if chunk.Text == "" {
			return nil
		}
		item.text = storable(chunk.Text)
	case ChunkUsage, ChunkOpaque: // the reader sees nothing of these
		item.chunk, item.trim = &chunk, false
	default:
		item.chunk = &chunk
	}
	f.trimmed = f.trimmed && !item.trim
	return f.put(ctx, item)
}

// storable replaces what Postgres cannot hold as text: NUL, and bytes that are no UTF-8.
func storable(text string) string {
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "\ufffd")
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// take hands all that is there to the actor, which is done with it when it takes again.
func (f *modelFeed) take() []feedItem {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := f.items
	clear(f.spare)
	f.items, f.spare = f.spare[:0], items
	f.bytes, f.notified = 0, false
	if f.room != nil {
		close(f.room)
		f.room = nil
	}
	return items
}

// hold keeps the feed from waking an actor that could only note that it was woken.
func (f *modelFeed) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

// release ends hold, and says whether there is something to take of which no wake tells.
func (f *modelFeed) release() (look bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	look = f.held && !f.notified && len(f.items) > 0
	f.held, f.resting, f.hasten = false, false, nil
	return look
}

// maxRest is how much text may wait for a moment.
const maxRest = 16 << 10

// mayRest says whether there is nothing but text of one kind, and little of it.
func (f *modelFeed) mayRest() bool {
	return len(f.items) == 1 && f.items[0].text != "" && f.bytes <= maxRest
}

// rest is hold for a busy node, when there is nothing but text of a kind: what else comes wakes the actor all the same.
func (f *modelFeed) rest(kind ChunkKind) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.mayRest() || f.items[0].kind != kind {
		return false
	}
	f.held, f.resting, f.notified = true, true, false
	return true
}

// hastens says what to do, once, when more text comes during the rest at a time or later.
func (f *modelFeed) hastens(early time.Time, hasten func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resting {
		f.early, f.hasten = early, hasten
	}
}
