package actors

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// maxFeed is how much unread model output one turn may hold: while its log cannot be written, the model's stream is not
// read any further.
const maxFeed = 256 << 10

// modelFeed carries one model call's output from the call's goroutine to the turn's actor. What the actor has not taken
// yet is merged, so a lagging actor finds few, large pieces; an idle one is woken for the first. On a busy node, text that
// may wait for a moment rests: the feed takes a place at the node's pacer, which wakes the actor then.
type modelFeed struct {
	call  int
	wake  func()     // posts one message to the actor
	pacer *pacer     // of the node
	actor *actor.PID // that the pacer wakes

	trimmed bool // owned by the call: the next output is to say that older messages were left out

	mu       sync.Mutex
	items    []feedItem    // guarded by mu
	spare    []feedItem    // guarded by mu: taken before, and done with by the next take
	bytes    int           // guarded by mu
	notified bool          // guarded by mu: a wake is on its way
	held     bool          // guarded by mu: the actor decides nothing now, and will look by itself
	patient  ChunkKind     // guarded by mu: of the text that may rest; 0: none
	decided  time.Time     // guarded by mu: when the actor decided last
	asked    bool          // guarded by mu: the pacer has said that what is there need not rest
	resting  bool          // guarded by mu: held, with text that waits in a place of the pacer
	place    int           // guarded by mu: of the latest rest
	seat     seat          // guarded by mu: of that place, while more text may shorten the rest
	room     chan struct{} // guarded by mu: non-nil while the call waits; closed by take
}

func newModelFeed(n *Node, to *actor.PID, call int) *modelFeed {
	return &modelFeed{
		call: call, wake: func() { n.system.Root.Send(to, feedReady{}) }, pacer: n.pacer, actor: to,
		place: call << 32, // so that no place of another call is taken for one of this
	}
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
	notify := !f.notified && (!f.held && !f.rest() || f.resting && !f.mayRest())
	f.notified = f.notified || notify
	var hasten seat
	if early := f.seat.early; f.resting && !early.IsZero() && !time.Now().Before(early) {
		hasten, f.seat = f.seat, seat{}
	}
	place := f.place
	f.mu.Unlock()
	switch {
	case notify:
		f.wake()
	case !hasten.early.IsZero():
		f.pacer.hasten(f.actor, place, hasten)
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
	f.bytes, f.notified, f.asked = 0, false, false
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

// release ends hold and a rest, and says whether there is something to take of which no wake tells.
func (f *modelFeed) release() (look bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open()
}

// served is release when the place of a rest has come; the feed may have left that place before.
func (f *modelFeed) served(place int) (look bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resting && f.place == place && f.open()
}

// open is called under mu.
func (f *modelFeed) open() (look bool) {
	look = f.held && !f.notified && len(f.items) > 0
	f.held, f.resting, f.patient = false, false, 0
	return look
}

// mayWait lets text of a kind rest that comes from now on, until release. What else comes wakes the actor.
func (f *modelFeed) mayWait(kind ChunkKind, decided time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.patient, f.decided = kind, decided
}

// rests lets what is there rest, if it is text of a kind, and so text that comes later. It says whether it does.
func (f *modelFeed) rests(kind ChunkKind, decided time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.patient, f.decided = kind, decided
	return f.rest()
}

// maxRest is how much text may wait for a moment.
const maxRest = 16 << 10

// mayRest says whether there is nothing but little text of the kind that may; with mu held.
func (f *modelFeed) mayRest() bool {
	return len(f.items) == 1 && f.items[0].text != "" && f.items[0].kind == f.patient && f.bytes <= maxRest
}

// rest takes a place at the pacer, once for what is there, unless the node is not busy; with mu held.
func (f *modelFeed) rest() bool {
	if f.asked || !f.mayRest() {
		return false
	}
	f.asked = true
	seat, waits := f.pacer.wait(f.actor, f.place+1, f.decided)
	if !waits {
		return false
	}
	f.place, f.seat = f.place+1, seat
	f.held, f.resting, f.notified = true, true, false
	return true
}
