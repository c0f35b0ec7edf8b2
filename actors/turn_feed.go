package actors

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// maxFeed limits the unread model output of one turn, in bytes: while the turn's log cannot be written, the stream of
// the model is not read any further.
const maxFeed = 256 << 10

// modelFeed passes the output of one model call from the call's goroutine to the turn's actor. Output that the actor
// has not taken yet is merged, so a lagging actor gets few, large pieces. An idle actor is woken for the first piece.
// On a busy node the feed defers text that may wait: it requests a slot from the node's pacer, which wakes the actor
// when the slot comes.
type modelFeed struct {
	call  int
	wake  func()     // posts one message to the actor
	pacer *pacer     // the pacer of the node
	actor *actor.PID // the actor that the pacer wakes

	trimmed bool // owned by the call's goroutine: the next output must report that older messages were left out

	mu         sync.Mutex
	items      []feedItem    // guarded by mu
	spare      []feedItem    // guarded by mu: the slice of the last take, reused by the next one
	bytes      int           // guarded by mu
	notified   bool          // guarded by mu: wake was called, and the items were neither taken nor deferred since
	held       bool          // guarded by mu: put does not wake the actor, which will call release or served
	deferrable llm.ChunkKind // guarded by mu: kind of the text that may be deferred; 0: none
	decided    time.Time     // guarded by mu: time of the actor's last batch
	consulted  bool          // guarded by mu: the pacer was consulted after the last take, and is not consulted again
	deferring  bool          // guarded by mu: held, with text that waits for a slot of the pacer; other output still wakes the actor
	request    int           // guarded by mu: number of the latest request for a slot
	slot       pacerSlot     // guarded by mu: the slot of that request; zero after moveUp
	spaceFreed chan struct{} // guarded by mu: non-nil while the call waits for space; closed by take
}

// newModelFeed returns the feed of a model call whose output goes to the actor to.
func newModelFeed(n *Node, to *actor.PID, call int) *modelFeed {
	return &modelFeed{
		call: call, wake: func() { n.runtime.Send(to, feedReady{}) }, pacer: n.pacer, actor: to,
		request: call << 32, // each call has its own numbers, so that served ignores the slots of earlier calls
	}
}

// feedItem is one piece of a call's output, or its end.
type feedItem struct {
	kind  llm.ChunkKind
	text  string     // of llm.ChunkText and llm.ChunkReasoning
	more  []byte     // the complete text after pieces were merged
	chunk *llm.Chunk // of every other kind
	over  bool       // the call ended: with err, or after llm.ChunkStop
	err   error
	hint  int               // estimated input tokens; only in the first item
	files []protocol.Source // in the request; only in the first item
	route int               // 1 + the index of the route that makes the call from now on; 0: the item is not about it
	trim  bool              // older messages were left out; only in the first output of the model
}

// fullText returns the text, including merged pieces.
func (i *feedItem) fullText() string {
	if i.more != nil {
		return string(i.more)
	}
	return i.text
}

// join appends a piece of text.
func (i *feedItem) join(text string) {
	if i.more == nil {
		i.more = append(make([]byte, 0, 2*(len(i.text)+len(text))), i.text...)
	}
	i.more = append(i.more, text...)
}

// put adds an item. It waits while the feed is full, and returns ctx's error when ctx ends first.
func (f *modelFeed) put(ctx context.Context, item feedItem) error {
	f.mu.Lock()
	for f.bytes > maxFeed && !item.over {
		if f.spaceFreed == nil {
			f.spaceFreed = make(chan struct{})
		}
		freed := f.spaceFreed
		f.mu.Unlock()
		select {
		case <-freed:
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
	notify := !f.notified && (!f.held && !f.deferText() || f.deferring && !f.mayDefer())
	f.notified = f.notified || notify
	var moved pacerSlot
	if early := f.slot.early; f.deferring && !early.IsZero() && !time.Now().Before(early) {
		moved, f.slot = f.slot, pacerSlot{}
	}
	request := f.request
	f.mu.Unlock()
	switch {
	case notify:
		f.wake()
	case !moved.early.IsZero():
		f.pacer.moveUp(f.actor, request, moved)
	}
	return nil
}

// emit adds a chunk of the model.
func (f *modelFeed) emit(ctx context.Context, chunk llm.Chunk) error {
	item := feedItem{kind: chunk.Kind, trim: f.trimmed}
	switch chunk.Kind {
	case llm.ChunkText, llm.ChunkReasoning:
		if chunk.Text == "" {
			return nil
		}
		item.text = turnlog.Storable(chunk.Text)
	case llm.ChunkUsage, llm.ChunkOpaque: // readers do not see these
		item.chunk, item.trim = &chunk, false
	default:
		item.chunk = &chunk
	}
	f.trimmed = f.trimmed && !item.trim
	return f.put(ctx, item)
}

// take removes and returns all items. The slice is valid until the next take.
func (f *modelFeed) take() []feedItem {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := f.items
	clear(f.spare)
	f.items, f.spare = f.spare[:0], items
	f.bytes, f.notified, f.consulted = 0, false, false
	if f.spaceFreed != nil {
		close(f.spaceFreed)
		f.spaceFreed = nil
	}
	return items
}

// hold stops put from waking the actor, because the actor cannot decide while a batch is being stored.
func (f *modelFeed) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

// release ends hold, a deferral and mayWait, and reports whether the feed has items for which the actor was not woken.
func (f *modelFeed) release() (pending bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

// served is release for the slot of a request, which has come. If the text of that request is no longer deferred,
// served changes nothing and returns false.
func (f *modelFeed) served(request int) (pending bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deferring && f.request == request && f.open()
}

// stale reports whether a wake of the actor was sent for text that has been deferred since, so that it needs no decision.
func (f *modelFeed) stale() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.deferring && !f.notified
}

// open implements release. The caller holds mu.
func (f *modelFeed) open() (pending bool) {
	pending = f.held && !f.notified && len(f.items) > 0
	f.held, f.deferring, f.deferrable = false, false, 0
	return pending
}

// mayWait allows the feed to defer text of the given kind that arrives before the next release. Any other output wakes
// the actor. decided is the time of the actor's last batch.
func (f *modelFeed) mayWait(kind llm.ChunkKind, decided time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deferrable, f.decided = kind, decided
}

// defers is mayWait for text that is already in the feed. It reports whether that text is deferred. While it is, put
// still wakes the actor when anything else arrives.
func (f *modelFeed) defers(kind llm.ChunkKind, decided time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deferrable, f.decided = kind, decided
	return f.deferText()
}

// maxDeferred is the largest number of bytes of text that may be deferred.
const maxDeferred = 16 << 10

// mayDefer reports whether the feed contains only deferrable text, and at most maxDeferred bytes. The caller holds mu.
func (f *modelFeed) mayDefer() bool {
	return len(f.items) == 1 && f.items[0].text != "" && f.items[0].kind == f.deferrable && f.bytes <= maxDeferred
}

// deferText requests a slot from the pacer if the text may be deferred, at most once after each take. It reports
// whether the text is deferred. On a node that is not busy, text is not deferred. The caller holds mu.
func (f *modelFeed) deferText() bool {
	if f.consulted || !f.mayDefer() {
		return false
	}
	f.consulted = true
	slot, waits := f.pacer.wait(f.actor, f.request+1, f.decided)
	if !waits {
		return false
	}
	f.request, f.slot = f.request+1, slot
	f.held, f.deferring, f.notified = true, true, false
	return true
}
