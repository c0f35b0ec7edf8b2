package turn

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"turnstone/actors/llm"
	"turnstone/actors/policy"
	"turnstone/protocol"
	"turnstone/protocol/foreign"
	"turnstone/protocol/turnlog"
)

const (
	// maxFeed limits the unread model output of one turn, in bytes: while the turn's log cannot be written, the stream of
	// the model is not read any further.
	maxFeed = 256 << 10
	// maxDeferred is the largest number of bytes of text that may wait for the pacer.
	maxDeferred = 16 << 10
)

// modelOutput passes the output of one model call from the call's goroutine to the turn's actor. Output that the actor
// has not taken yet is merged, so a lagging actor gets few, large pieces. A feedState decides when the actor is woken for
// it, and when text waits for the node's pacer, which wakes the actor when the slot of the turn comes.
type modelOutput struct {
	call  int
	wake  func()     // posts feedReady to the actor
	pacer *pacer     // the pacer of the node
	actor *actor.PID // the actor that the pacer wakes

	trimmed bool // owned by the call's goroutine: the next output must report that older messages were left out

	mu         sync.Mutex
	state      feedState     // guarded by mu
	items      []feedItem    // guarded by mu
	spare      []feedItem    // guarded by mu: the slice of the last take, reused by the next one
	bytes      int           // guarded by mu
	open       llm.ChunkKind // guarded by mu: kind of the text that may wait; 0: none
	decided    time.Time     // guarded by mu: time of the actor's last step
	request    int           // guarded by mu: number of the latest request for a slot
	slot       pacerSlot     // guarded by mu: the slot of that request; zero after moveUp
	spaceFreed chan struct{} // guarded by mu: non-nil while the call waits for space; closed by take
}

// newModelOutput returns the output of a model call, which goes to the actor to.
func newModelOutput(h *Host, to *actor.PID, call int) *modelOutput {
	return &modelOutput{
		call: call, wake: func() { h.node.Runtime.Send(to, feedReady{}) }, pacer: h.pacer, actor: to,
		request: call << 32, // each call has its own numbers, so that the slots of earlier calls are ignored
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

	reading *policy.Reading  // of the request; only in the first item
	grants  *[]turnlog.Grant // of the conversation; nil: the item is not about them

	route int  // 1 + the index of the route that makes the call from now on; 0: the item is not about it
	trim  bool // older messages were left out; only in the first output of the model
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
func (f *modelOutput) put(ctx context.Context, item feedItem) error {
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
	waited := f.state == feedDeferred
	wake := f.handle(feedPut)
	var moved pacerSlot
	if early := f.slot.early; waited && !wake && !early.IsZero() && !time.Now().Before(early) {
		moved, f.slot = f.slot, pacerSlot{}
	}
	request := f.request
	f.mu.Unlock()
	switch {
	case wake:
		f.wake()
	case !moved.early.IsZero():
		f.pacer.moveUp(f.actor, request, moved)
	}
	return nil
}

// emit adds a chunk of the model.
func (f *modelOutput) emit(ctx context.Context, chunk llm.Chunk) error {
	item := feedItem{kind: chunk.Kind, trim: f.trimmed}
	switch chunk.Kind {
	case llm.ChunkText, llm.ChunkReasoning:
		if chunk.Text == "" {
			return nil
		}
		item.text = foreign.Storable(chunk.Text)
	case llm.ChunkUsage, llm.ChunkOpaque: // readers do not see these
		item.chunk, item.trim = &chunk, false
	default:
		item.chunk = &chunk
	}
	f.trimmed = f.trimmed && !item.trim
	return f.put(ctx, item)
}

// take removes and returns all items. The slice is valid until the next take.
func (f *modelOutput) take() []feedItem {
	f.mu.Lock()
	defer f.mu.Unlock()
	items := f.items
	clear(f.spare)
	f.items, f.spare = f.spare[:0], items
	f.bytes = 0
	f.handle(feedTaken)
	if f.spaceFreed != nil {
		close(f.spaceFreed)
		f.spaceFreed = nil
	}
	return items
}

// hold is called when a step of the actor is being stored. From now on, more text of the kind open may wait; 0: none may.
func (f *modelOutput) hold(open llm.ChunkKind, decided time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open, f.decided = open, decided
	f.handle(feedHold)
}

// release is called when the step is stored.
func (f *modelOutput) release() {
	f.mu.Lock()
	wake := f.handle(feedRelease)
	f.mu.Unlock()
	if wake {
		f.wake()
	}
}

// awaited reports whether the actor was woken for output that it has not taken.
func (f *modelOutput) awaited() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state == feedWoken
}

// served is called when the slot of a request has come. It reports whether the text of that request still waits: the actor
// takes it now.
func (f *modelOutput) served(request int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.request != request || f.state != feedDeferred {
		return false
	}
	f.handle(feedSlot)
	return true
}

// handle passes an event to the state, and asks the pacer if the state requires it. It reports whether the caller has to
// wake the actor. The caller holds mu.
func (f *modelOutput) handle(e feedEvent) (wake bool) {
	content := feedOther
	switch {
	case len(f.items) == 0:
		content = feedEmpty
	case len(f.items) == 1 && f.items[0].text != "" && f.items[0].kind == f.open && f.bytes <= maxDeferred:
		content = feedText
	}
	next, action := f.state.on(e, content)
	if action == feedAsk {
		e = feedRefused
		if slot, waits := f.pacer.wait(f.actor, f.request+1, f.decided); waits {
			e, f.request, f.slot = feedGranted, f.request+1, slot
		}
		next, action = next.on(e, content)
	}
	f.state = next
	return action == feedWake
}
