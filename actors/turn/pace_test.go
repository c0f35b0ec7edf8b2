package turn

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// pacedLoad simulates turns that get a token at a fixed interval for two seconds and consult a pacer. It returns the
// number of decisions, how many of them waited, and the longest wait among those that were followed by more text.
func pacedLoad(t *testing.T, turns int, between time.Duration) (decisions, waited int, longest time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		type simulatedTurn struct {
			arrived, last time.Time // arrival of the first waiting text; last decision of the turn
			request       int       // number of the last request
			waits         bool
			slot          pacerSlot
		}
		simulated := map[*actor.PID]*simulatedTurn{}
		pids := make([]*actor.PID, turns)
		done := make(chan struct {
			pid     *actor.PID
			request int
		}, turns)
		p := newPacer(func(to *actor.PID, message any) {
			done <- struct {
				pid     *actor.PID
				request int
			}{to, message.(paced).request}
		})
		p.cpus = 2
		for i := range pids {
			pids[i] = actor.NewPID("test", "turn")
			simulated[pids[i]] = &simulatedTurn{last: time.Now().Add(-time.Hour)}
		}
		begun := time.Now()
		served := func() {
			for len(done) > 0 {
				d := <-done
				sim := simulated[d.pid]
				if !sim.waits || d.request != sim.request {
					t.Errorf("a turn was woken for request %d; its last request is %d, waiting %v", d.request, sim.request, sim.waits)
				}
				if sim.arrived.Sub(begun) < 2*time.Second-between { // more text followed
					longest = max(longest, time.Since(sim.arrived))
				}
				sim.waits, sim.last = false, time.Now()
			}
		}
		const step = time.Millisecond
		for now := time.Duration(0); now < 2*time.Second+paceMost+2*paceGrid; now += step {
			for i, pid := range pids {
				sim := simulated[pid]
				if now > 2*time.Second || (now+time.Duration(i)*between/time.Duration(turns)).Truncate(step)%between.Truncate(step) != 0 {
					continue
				}
				if sim.waits {
					if !sim.slot.early.IsZero() && !time.Now().Before(sim.slot.early) {
						p.moveUp(pid, sim.request, sim.slot)
						sim.slot.early = time.Time{}
					}
					continue
				}
				sim.arrived = time.Now()
				sim.request++
				decisions++
				if sim.slot, sim.waits = p.wait(pid, sim.request, sim.last); sim.waits {
					waited++
				} else {
					sim.last = time.Now()
				}
			}
			<-time.After(step)
			synctest.Wait()
			served()
		}
		for _, sim := range simulated {
			if sim.waits {
				t.Error("a waiting turn was never woken")
			}
		}
		if p.waiting != 0 {
			t.Errorf("the pacer still has %d entries", p.waiting)
		}
	})
	return decisions, waited, longest
}

func TestAQuietNodeShowsTextAtOnce(t *testing.T) {
	if _, waited, _ := pacedLoad(t, 30, 33*time.Millisecond); waited > 0 {
		t.Errorf("%d decisions waited, want none", waited)
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
	if longest > between+paceGrid+time.Millisecond { // text waits until the second token, and no longer
		t.Errorf("text waited %s", longest)
	}
}

func TestTextThatNothingFollowsWaitsAtMostPaceMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan any, 1)
		p := busyPacer(func(_ *actor.PID, message any) { done <- message })
		begun := time.Now()
		s, waits := p.wait(actor.NewPID("test", "turn"), 1, begun)
		if !waits || s.early != begun.Add(paceSpreadMost) {
			t.Errorf("wait returned %v with early after %s, want true and %s", waits, s.early.Sub(begun), paceSpreadMost)
		}
		if got := <-done; got != (paced{1}) || time.Since(begun) < paceSpreadMost || time.Since(begun) > paceMost+paceGrid {
			t.Errorf("the turn got %v after %s, want %v after %s to %s", got, time.Since(begun), paced{1}, paceSpreadMost, paceMost+paceGrid)
		}
		p.moveUp(actor.NewPID("test", "turn"), 1, s) // too late
		synctest.Wait()
		if p.waiting != 0 || len(done) != 0 {
			t.Errorf("after a late moveUp %d turns wait and %d were woken, want none", p.waiting, len(done))
		}
	})
}

// busyPacer returns a pacer with a high rate that does not change.
func busyPacer(send func(*actor.PID, any)) *pacer {
	p := newPacer(send)
	p.rate, p.since = 1e6, time.Now().Add(time.Hour)
	return p
}

// text puts a piece of text into an output.
func text(t *testing.T, f *modelOutput, kind llm.ChunkKind, text string) {
	t.Helper()
	if err := f.put(t.Context(), outputItem{kind: kind, text: text}); err != nil {
		t.Fatal(err)
	}
}

func TestMoreTextShortensTheWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wakes := 0
		p := busyPacer(func(*actor.PID, any) {})
		f := &modelOutput{wake: func() { wakes++ }, pacer: p, actor: actor.NewPID("test", "turn")}
		f.hold(llm.ChunkText, time.Now())
		text(t, f, llm.ChunkText, "a")
		p.rate = 1e6 // the node is busy
		if f.release(); f.state != outputDeferred {
			t.Fatalf("after the release, the output is in state %d", f.state)
		}
		last := f.slot.point
		for _, moved := range []bool{false, true, true} {
			text(t, f, llm.ChunkText, "a")
			p.mu.Lock()
			if waits := p.slots[last%paceSlots][0].pid != nil; waits == moved {
				t.Errorf("the turn waits in its first slot: %v, want %v", waits, !moved)
			}
			if p.waiting > 2 {
				t.Errorf("the pacer has %d entries, want at most 2", p.waiting)
			}
			p.next = last - 2 // simulates that earlier grid points were served
			p.mu.Unlock()
			f.mu.Lock()
			if !f.slot.early.IsZero() {
				f.slot.early = time.Now()
			}
			f.mu.Unlock()
		}
		if pending := f.served(f.request); !pending || wakes != 0 {
			t.Errorf("served returned %v and the actor was woken %d times, want true and never", pending, wakes)
		}
	})
}

// The output of an idle actor requests a slot from the pacer itself. It wakes the actor for all output that may not wait.
func TestOnlyTextOfTheOpenPartWaitsWithoutTheActor(t *testing.T) {
	for name, c := range map[string]struct {
		put    func(t *testing.T, f *modelOutput)
		defers bool
	}{
		"more text":      {func(t *testing.T, f *modelOutput) { text(t, f, llm.ChunkText, "a") }, true},
		"text in pieces": {func(t *testing.T, f *modelOutput) { text(t, f, llm.ChunkText, "a"); text(t, f, llm.ChunkText, "b") }, true},
		"another kind":   {func(t *testing.T, f *modelOutput) { text(t, f, llm.ChunkReasoning, "a") }, false},
		"two kinds": {func(t *testing.T, f *modelOutput) {
			text(t, f, llm.ChunkText, "a")
			text(t, f, llm.ChunkReasoning, "a")
		}, false},
		"much text": {func(t *testing.T, f *modelOutput) { text(t, f, llm.ChunkText, strings.Repeat("a", maxDeferred+1)) }, false},
		"much text in two pieces": {func(t *testing.T, f *modelOutput) {
			text(t, f, llm.ChunkText, "a")
			text(t, f, llm.ChunkText, strings.Repeat("a", maxDeferred))
		}, false},
		"the end": {func(t *testing.T, f *modelOutput) {
			text(t, f, llm.ChunkText, "a")
			if err := f.put(t.Context(), outputItem{over: true}); err != nil {
				t.Fatal(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wakes, served := 0, make(chan int, 1)
				p := busyPacer(func(_ *actor.PID, message any) { served <- message.(paced).request })
				f := &modelOutput{wake: func() { wakes++ }, pacer: p, actor: actor.NewPID("test", "turn")}
				f.hold(llm.ChunkText, time.Now())
				f.release()
				c.put(t, f)
				if defers := wakes == 0; defers != c.defers {
					t.Fatalf("the output defers the text: %v, want %v", defers, c.defers)
				}
				if !c.defers {
					f.take()
				}
				select {
				case request := <-served:
					if pending := f.served(request); pending != c.defers {
						t.Errorf("served(%d) returned %v, want %v", request, pending, c.defers)
					}
				case <-time.After(time.Second):
					if c.defers {
						t.Error("the pacer did not wake the actor")
					}
				}
			})
		})
	}
}

// busyNode returns a node whose pacer has a high rate and wakes turns only when the test calls serveAll.
func busyNode(t *testing.T, store *actorstest.Memory, model llm.Model) *testNode {
	t.Helper()
	n := startNode(t, store, model, nil)
	p := n.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate, p.since = paceSpread, time.Now().Add(time.Hour) // the pacer keeps this rate
	p.waiting = 1                                           // the pacer sets no timer
	return n
}

// checkDeferred waits until every goroutine of a bubble waits, and fails unless the text of one turn waits at the pacer.
func (p *pacer) checkDeferred(t *testing.T) {
	t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting != 2 {
		t.Fatalf("%d texts wait at the pacer", p.waiting-1)
	}
}

// serveAll wakes all waiting turns.
func (p *pacer) serveAll() {
	p.mu.Lock()
	p.origin = p.origin.Add(-paceMost) // simulates that paceMost has passed
	p.mu.Unlock()
	p.serve()
}

// The first text of a part is shown at once. More text waits. A command does not wait, and the waiting text is stored
// before it.
func TestOnlyMoreTextWaitsAndAnyOtherDecisionIncludesIt(t *testing.T) {
	inBubble(t, onlyMoreTextWaits)
}

func onlyMoreTextWaits(t *testing.T) {
	store := actorstest.NewMemory()
	more, proceed := make(chan struct{}), make(chan struct{})
	model := &llmtest.Script{Play: func(ctx context.Context, call int, _ llm.Request, emit func(llm.Chunk) error) error {
		if call > 1 { // the step of the input
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
		}
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "first "}); err != nil {
			return err
		}
		for _, next := range []struct {
			when chan struct{}
			what llm.Chunk
		}{{more, llm.Chunk{Kind: llm.ChunkText, Text: "second "}}, {proceed, llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn}}} {
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
	seen := read(t, n, spec, 0, isDelta) // returns although the pacer wakes no turn
	more <- struct{}{}
	n.pacer.checkDeferred(t)
	_, err := n.Command(t.Context(), spec.AccountID, spec.TurnID, &machine.Command{
		Kind: machine.CommandInput, SteeringID: protocol.NewSteeringID(), ClientID: "c1", Text: "use JWT", Hash: "h", Delivery: protocol.DeliverNextStep,
	})
	if err != nil {
		t.Fatal(err)
	}
	store.Mu.Lock()
	stored := bytes.Clone(store.Turns[spec.TurnID].Frames)
	store.Mu.Unlock()
	text, input := bytes.Index(stored, []byte("second ")), bytes.Index(stored, []byte("use JWT"))
	if text < 0 || input < text || bytes.Contains(seen, []byte("second ")) {
		t.Errorf("the text that waited is at byte %d of the log, the input at byte %d; a reader saw %q before", text, input, seen)
	}
	close(proceed) // the end does not wait either
	read(t, n, spec, 0, isFinished)
}

// All text that waited becomes one event, in order, in a deferrable append.
func TestTextThatWaitedIsOneEvent(t *testing.T) { inBubble(t, textThatWaitedIsOneEvent) }

func textThatWaitedIsOneEvent(t *testing.T) {
	store := actorstest.NewMemory()
	deferrable := make(chan bool, 16)
	store.OnAppend = func(batch *turnlog.Append, commit func() error, done func(error)) {
		deferrable <- batch.Deferrable
		done(commit())
	}
	more, proceed := make(chan struct{}), make(chan struct{})
	model := &llmtest.Script{Play: func(ctx context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
		if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "a"}); err != nil {
			return err
		}
		<-more
		for _, text := range []string{"b", "c", "d"} {
			if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: text}); err != nil {
				return err
			}
		}
		more <- struct{}{}
		select {
		case <-proceed:
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	n := busyNode(t, store, model)
	spec := startTurn(t, n, "hi")
	seen := read(t, n, spec, 0, isDelta)
	if <-deferrable {
		t.Error("the append with the first text was deferrable")
	}
	more <- struct{}{}
	<-more
	n.pacer.checkDeferred(t)
	n.pacer.serveAll()
	got := read(t, n, spec, int64(bytes.Count(seen, []byte{'\n'})), isDelta)
	if !<-deferrable || !bytes.Contains(got, []byte(`"delta":"bcd"`)) {
		t.Errorf("the text that waited was stored as %s, or its append was not deferrable", got)
	}
	close(proceed)
	read(t, n, spec, 0, isFinished)
}
