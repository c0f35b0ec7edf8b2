package actors

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"turnstone/protocol"
)

// pacedLoad lets turns ask a pacer at a pace of tokens for two seconds, and tells how many waited and the longest wait while more came.
func pacedLoad(t *testing.T, turns int, between time.Duration) (decisions, waited int, longest time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		type place struct {
			asked, last time.Time // when text came; when the turn decided last
			number      int
			waits       bool
			seat        seat
		}
		places := map[*actor.PID]*place{}
		pids := make([]*actor.PID, turns)
		done := make(chan struct {
			pid   *actor.PID
			place int
		}, turns)
		p := newPacer(func(to *actor.PID, message any) {
			done <- struct {
				pid   *actor.PID
				place int
			}{to, message.(paced).place}
		})
		p.cpus = 2
		for i := range pids {
			pids[i] = actor.NewPID("test", "turn")
			places[pids[i]] = &place{last: time.Now().Add(-time.Hour)}
		}
		begun := time.Now()
		served := func() {
			for len(done) > 0 {
				d := <-done
				at := places[d.pid]
				if !at.waits || d.place != at.number {
					t.Errorf("turn woken for place %d while it stood at %d, waiting %v", d.place, at.number, at.waits)
				}
				if at.asked.Sub(begun) < 2*time.Second-between { // more text came
					longest = max(longest, time.Since(at.asked))
				}
				at.waits, at.last = false, time.Now()
			}
		}
		const step = time.Millisecond
		for now := time.Duration(0); now < 2*time.Second+paceMost+2*paceGrid; now += step {
			for i, pid := range pids {
				at := places[pid]
				if now > 2*time.Second || (now+time.Duration(i)*between/time.Duration(turns)).Truncate(step)%between.Truncate(step) != 0 {
					continue
				}
				if at.waits {
					if !at.seat.early.IsZero() && !time.Now().Before(at.seat.early) {
						p.hasten(pid, at.number, at.seat)
						at.seat.early = time.Time{}
					}
					continue
				}
				at.asked = time.Now()
				at.number++
				decisions++
				if at.seat, at.waits = p.wait(pid, at.number, at.last); at.waits {
					waited++
				} else {
					at.last = time.Now()
				}
			}
			<-time.After(step)
			synctest.Wait()
			served()
		}
		for _, at := range places {
			if at.waits {
				t.Error("a turn waits for ever")
			}
		}
		if p.waiting != 0 {
			t.Errorf("%d places are left", p.waiting)
		}
	})
	return decisions, waited, longest
}

func TestAQuietNodeShowsTextAtOnce(t *testing.T) {
	if _, waited, _ := pacedLoad(t, 30, 33*time.Millisecond); waited > 0 {
		t.Errorf("%d decisions waited", waited)
	}
}

func TestABusyNodeLetsTurnsDecideTogether(t *testing.T) {
	if decisions, waited, longest := pacedLoad(t, 150, 33*time.Millisecond); waited < decisions/2 || longest > paceGrid {
		t.Errorf("%d of %d decisions waited, the longest %s", waited, decisions, longest)
	}
}

func TestAVeryBusyNodeLetsTurnsDecideSeldomAndNoneWaitsLong(t *testing.T) {
	const turns, between = 2000, 33 * time.Millisecond
	decisions, _, longest := pacedLoad(t, turns, between)
	if most := turns * int(2*time.Second/(2*between)) * 5 / 4; decisions > most { // two tokens each
		t.Errorf("%d decisions, want at most %d", decisions, most)
	}
	if longest > between+paceGrid+time.Millisecond { // until the second token, and no longer
		t.Errorf("text waited %s", longest)
	}
}

func TestTextThatNothingFollowsWaitsForAMomentOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan any, 1)
		p := busyPacer(func(_ *actor.PID, message any) { done <- message })
		begun := time.Now()
		s, waits := p.wait(actor.NewPID("test", "turn"), 1, begun)
		if !waits || s.early != begun.Add(paceSpreadMost) {
			t.Errorf("it waits: %v, and longer from %s on", waits, s.early.Sub(begun))
		}
		if got := <-done; got != (paced{1}) || time.Since(begun) < paceSpreadMost || time.Since(begun) > paceMost+paceGrid {
			t.Errorf("%v after %s", got, time.Since(begun))
		}
		p.hasten(actor.NewPID("test", "turn"), 1, s) // too late
		synctest.Wait()
		if p.waiting != 0 || len(done) != 0 {
			t.Errorf("%d wait, %d were woken", p.waiting, len(done))
		}
	})
}

// busyPacer thinks that its node has much to do, and measures no more.
func busyPacer(send func(*actor.PID, any)) *pacer {
	p := newPacer(send)
	p.rate, p.since = 1e6, time.Now().Add(time.Hour)
	return p
}

func text(t *testing.T, f *modelFeed, kind ChunkKind, text string) {
	t.Helper()
	if err := f.put(t.Context(), feedItem{kind: kind, text: text}); err != nil {
		t.Fatal(err)
	}
}

func TestMoreTextShortensARestOnceFromEarlyOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wakes := 0
		p := busyPacer(func(*actor.PID, any) {})
		f := &modelFeed{wake: func() { wakes++ }, pacer: p, actor: actor.NewPID("test", "turn")}
		text(t, f, ChunkText, "a")
		p.rate = 1e6 // it is busy from now on
		if !f.rests(ChunkText, time.Now()) {
			t.Fatal("it does not rest")
		}
		last := f.seat.point
		for _, hastened := range []bool{false, true, true} {
			text(t, f, ChunkText, "a")
			p.mu.Lock()
			if waits := p.slots[last%paceSlots][0].pid != nil; waits == hastened {
				t.Errorf("it waits in its last place: %v", waits)
			}
			if p.waiting > 2 {
				t.Errorf("%d places", p.waiting)
			}
			p.next = last - 2 // nobody serves
			p.mu.Unlock()
			f.mu.Lock()
			if !f.seat.early.IsZero() {
				f.seat.early = time.Now()
			}
			f.mu.Unlock()
		}
		if look := f.served(f.place); !look || wakes != 1 { // by the first text, before the rest
			t.Errorf("something to take: %v; woken %d times", look, wakes)
		}
	})
}

// A feed whose actor is idle goes to the pacer by itself, and wakes the actor for all that may not wait.
func TestOnlyTextOfTheOpenPartWaitsWithoutTheActor(t *testing.T) {
	for name, c := range map[string]struct {
		put   func(t *testing.T, f *modelFeed)
		rests bool
	}{
		"more text":      {func(t *testing.T, f *modelFeed) { text(t, f, ChunkText, "a") }, true},
		"text in pieces": {func(t *testing.T, f *modelFeed) { text(t, f, ChunkText, "a"); text(t, f, ChunkText, "b") }, true},
		"another kind":   {func(t *testing.T, f *modelFeed) { text(t, f, ChunkReasoning, "a") }, false},
		"two kinds":      {func(t *testing.T, f *modelFeed) { text(t, f, ChunkText, "a"); text(t, f, ChunkReasoning, "a") }, false},
		"much text":      {func(t *testing.T, f *modelFeed) { text(t, f, ChunkText, strings.Repeat("a", maxRest+1)) }, false},
		"much text by bits": {func(t *testing.T, f *modelFeed) {
			text(t, f, ChunkText, "a")
			text(t, f, ChunkText, strings.Repeat("a", maxRest))
		}, false},
		"the end": {func(t *testing.T, f *modelFeed) {
			text(t, f, ChunkText, "a")
			if err := f.put(t.Context(), feedItem{over: true}); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wakes, served := 0, make(chan int, 1)
				p := busyPacer(func(_ *actor.PID, message any) { served <- message.(paced).place })
				f := &modelFeed{wake: func() { wakes++ }, pacer: p, actor: actor.NewPID("test", "turn")}
				f.mayWait(ChunkText, time.Now())
				c.put(t, f)
				if rests := wakes == 0; rests != c.rests {
					t.Fatalf("it rests: %v", rests)
				}
				if !c.rests {
					f.release()
				}
				select {
				case place := <-served:
					if look := f.served(place); look != c.rests {
						t.Errorf("something to take in place %d: %v", place, look)
					}
				case <-time.After(time.Second):
					if c.rests {
						t.Error("nobody is woken")
					}
				}
			})
		})
	}
}

// busyNode is a node that thinks that it has much to do, and whose pacer serves when it is told to.
func busyNode(t *testing.T, store *memory, model Model) *Node {
	t.Helper()
	n := startNode(t, store, model, nil)
	p := n.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate, p.since = paceSpread, time.Now().Add(time.Hour) // it measures no more
	p.waiting = 1                                           // and sets no timer
	return n
}

// rests waits until a turn's text waits.
func (p *pacer) rests(t *testing.T) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		p.mu.Lock()
		waiting := p.waiting
		p.mu.Unlock()
		if waiting == 2 {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("no text waits")
		}
	}
}

func (p *pacer) serveAll() {
	p.mu.Lock()
	p.origin = p.origin.Add(-paceMost) // as if so much time had passed
	p.mu.Unlock()
	p.serve()
}

// The first text of a part is shown at once; more of it waits; a command does not, and what waited goes before it.
func TestOnlyMoreTextWaitsAndWhatHappensTakesItAlong(t *testing.T) {
	store := newMemory()
	more, goOn := make(chan struct{}), make(chan struct{})
	model := &script{play: func(ctx context.Context, call int, _ ModelRequest, emit func(ModelChunk) error) error {
		if call > 1 { // the step of the input
			return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
		}
		if err := emit(ModelChunk{Kind: ChunkText, Text: "first "}); err != nil {
			return err
		}
		for _, next := range []struct {
			when chan struct{}
			what ModelChunk
		}{{more, ModelChunk{Kind: ChunkText, Text: "second "}}, {goOn, ModelChunk{Kind: ChunkStop, Stop: StopEndTurn}}} {
			select {
			case <-next.when:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := emit(next.what); err != nil {
				return err
			}
		}
		return nil
	}}
	n := busyNode(t, store, model)
	spec := startTurn(t, n, "hi")
	seen := read(t, n, spec, 0, isDelta) // nobody serves
	more <- struct{}{}
	n.pacer.rests(t)
	_, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, &Command{
		Kind: CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "use JWT", Hash: "h", Delivery: protocol.DeliverNextStep,
	})
	if err != nil {
		t.Fatal(err)
	}
	store.mu.Lock()
	stored := bytes.Clone(store.turns[spec.TurnID].frames)
	store.mu.Unlock()
	text, input := bytes.Index(stored, []byte("second ")), bytes.Index(stored, []byte("use JWT"))
	if text < 0 || input < text || bytes.Contains(seen, []byte("second ")) {
		t.Errorf("the text that waited is at %d of the log, the input at %d", text, input)
	}
	close(goOn) // an end does not wait either
	read(t, n, spec, 0, isFinished)
}

// Text that waited is one event, patient in the journal, in its place.
func TestTextThatWaitedIsOneEvent(t *testing.T) {
	store := newMemory()
	patient := make(chan bool, 16)
	store.onAppend = func(batch *protocol.TurnAppend, keep func() error, done func(error)) {
		patient <- batch.Patient
		done(keep())
	}
	more, goOn := make(chan struct{}), make(chan struct{})
	model := &script{play: func(ctx context.Context, _ int, _ ModelRequest, emit func(ModelChunk) error) error {
		if err := emit(ModelChunk{Kind: ChunkText, Text: "a"}); err != nil {
			return err
		}
		<-more
		for _, text := range []string{"b", "c", "d"} {
			if err := emit(ModelChunk{Kind: ChunkText, Text: text}); err != nil {
				return err
			}
		}
		more <- struct{}{}
		select {
		case <-goOn:
			return emit(ModelChunk{Kind: ChunkStop, Stop: StopEndTurn})
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	n := busyNode(t, store, model)
	spec := startTurn(t, n, "hi")
	seen := read(t, n, spec, 0, isDelta)
	if <-patient {
		t.Error("the first text was patient")
	}
	more <- struct{}{}
	<-more
	n.pacer.rests(t)
	n.pacer.serveAll()
	got := read(t, n, spec, int64(bytes.Count(seen, []byte{'\n'})), isDelta)
	if !<-patient || !bytes.Contains(got, []byte(`"delta":"bcd"`)) {
		t.Errorf("what waited: %s", got)
	}
	close(goOn)
	read(t, n, spec, 0, isFinished)
}
