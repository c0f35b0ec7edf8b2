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
	// maxUnread limits the unread model output of one turn, in bytes: while the turn's log cannot be written, the stream of
	// the model is not read any further.
	maxUnread = 256 << 10
	// maxDeferred is the largest number of bytes of text that may wait for the pacer.
	maxDeferred = 16 << 10
)

// modelOutput passes the output of one model call from the call's goroutine to the turn's actor. Output that the actor
// has not taken yet is merged, so a lagging actor gets few, large pieces. A outputState decides when the actor is woken for
// it, and when text waits for the node's pacer, which wakes the actor when the slot of the turn comes.
//
// Order: that of the model; only neighbouring pieces of the same kind of text are merged. Loss: none until the call is stopped: what the
// actor has not taken then is dropped with the modelOutput. Resume: none; the next call gets a new one. Slow actor: put waits while
// more than maxUnread bytes are unread, so nothing more is read from the model. Close: the item that is over is the last; it is
// accepted at once. Concurrency: the call's goroutine uses put and emit, the actor everything else.
type modelOutput struct {
	call  int
	wake  func()     // posts outputReady to the actor
	pacer *pacer     // the pacer of the node
	actor *actor.PID // the actor that the pacer wakes

	trimmed bool // owned by the call's goroutine: the next output must report that older messages were left out

	mu         sync.Mutex
	state      outputState   // guarded by mu
	items      []outputItem  // guarded by mu
	spare      []outputItem  // guarded by mu: the slice of the last take, reused by the next one
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
		call: call, wake: func() { h.node.Runtime.Send(to, outputReady{}) }, pacer: h.pacer, actor: to,
		request: call << 32, // each call has its own numbers, so that the slots of earlier calls are ignored
	}
}

// outputItem is one piece of a call's output, or its end.
type outputItem struct {
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
func (i *outputItem) fullText() string {
	if i.more != nil {
		return string(i.more)
	}
	return i.text
}

// join appends a piece of text.
func (i *outputItem) join(text string) {
	if i.more == nil {
		i.more = append(make([]byte, 0, 2*(len(i.text)+len(text))), i.text...)
	}
	i.more = append(i.more, text...)
}

// put adds an item. It waits while maxUnread bytes are unread, and returns ctx's error when ctx ends first.
func (o *modelOutput) put(ctx context.Context, item outputItem) error {
	o.mu.Lock()
	for o.bytes > maxUnread && !item.over {
		if o.spaceFreed == nil {
			o.spaceFreed = make(chan struct{})
		}
		freed := o.spaceFreed
		o.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
		o.mu.Lock()
	}
	if n := len(o.items); n > 0 && item.text != "" && o.items[n-1].text != "" && o.items[n-1].kind == item.kind {
		o.items[n-1].join(item.text)
	} else {
		o.items = append(o.items, item)
	}
	o.bytes += len(item.text)
	waited := o.state == outputDeferred
	wake := o.handle(outputPut)
	var moved pacerSlot
	if early := o.slot.early; waited && !wake && !early.IsZero() && !time.Now().Before(early) {
		moved, o.slot = o.slot, pacerSlot{}
	}
	request := o.request
	o.mu.Unlock()
	switch {
	case wake:
		o.wake()
	case !moved.early.IsZero():
		o.pacer.moveUp(o.actor, request, moved)
	}
	return nil
}

// emit adds a chunk of the model.
func (o *modelOutput) emit(ctx context.Context, chunk llm.Chunk) error {
	item := outputItem{kind: chunk.Kind, trim: o.trimmed}
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
	o.trimmed = o.trimmed && !item.trim
	return o.put(ctx, item)
}

// take removes and returns all items. The slice is valid until the next take.
func (o *modelOutput) take() []outputItem {
	o.mu.Lock()
	defer o.mu.Unlock()
	items := o.items
	clear(o.spare)
	o.items, o.spare = o.spare[:0], items
	o.bytes = 0
	o.handle(outputTaken)
	if o.spaceFreed != nil {
		close(o.spaceFreed)
		o.spaceFreed = nil
	}
	return items
}

// hold is called when a step of the actor is being stored. From now on, more text of the kind open may wait; 0: none may.
func (o *modelOutput) hold(open llm.ChunkKind, decided time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open, o.decided = open, decided
	o.handle(outputHold)
}

// release is called when the step is stored.
func (o *modelOutput) release() {
	o.mu.Lock()
	wake := o.handle(outputRelease)
	o.mu.Unlock()
	if wake {
		o.wake()
	}
}

// awaited reports whether the actor was woken for output that it has not taken.
func (o *modelOutput) awaited() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state == outputWoken
}

// served is called when the slot of a request has come. It reports whether the text of that request still waits: the actor
// takes it now.
func (o *modelOutput) served(request int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.request != request || o.state != outputDeferred {
		return false
	}
	o.handle(outputSlot)
	return true
}

// handle passes an event to the state, and asks the pacer if the state requires it. It reports whether the caller has to
// wake the actor. The caller holds mu.
func (o *modelOutput) handle(e outputEvent) (wake bool) {
	content := outputOther
	switch {
	case len(o.items) == 0:
		content = outputEmpty
	case len(o.items) == 1 && o.items[0].text != "" && o.items[0].kind == o.open && o.bytes <= maxDeferred:
		content = outputText
	}
	next, action := o.state.on(e, content)
	if action == outputAsk {
		e = outputRefused
		if slot, waits := o.pacer.wait(o.actor, o.request+1, o.decided); waits {
			e, o.request, o.slot = outputGranted, o.request+1, slot
		}
		next, action = next.on(e, content)
	}
	o.state = next
	return action == outputWake
}
