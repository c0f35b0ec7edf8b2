package turn

import (
	"fmt"
	"testing"
)

// outputWorld is one state of an output together with its actor: what waits, which messages are on their way to the
// actor, and whether the actor stores a step.
type outputWorld struct {
	state   outputState
	content outputContent
	wakes   int  // messages to the actor that say that there is output; at most two are counted
	slot    bool // the slot of the waiting text will come
	storing bool
}

// steps returns everything that can happen next.
func (w outputWorld) steps() map[string]outputWorld {
	all := map[string]outputWorld{}
	// apply passes an event to the state, with every answer that the pacer may give.
	apply := func(name string, next outputWorld, e outputEvent, then func(*outputWorld)) {
		state, action := next.state.on(e, next.content)
		for _, answer := range []outputEvent{outputGranted, outputRefused} {
			next, action := next, action
			next.state = state
			if action == outputAsk {
				next.state, action = state.on(answer, next.content)
				next.slot = next.slot || answer == outputGranted
			}
			if action == outputWake {
				next.wakes = min(next.wakes+1, 2)
			}
			then(&next)
			all[fmt.Sprintf("%s (%d)", name, answer)] = next
		}
	}
	// decide lets the actor take the output, and store a step or not.
	decide := func(name string, next outputWorld) {
		next.state, _ = next.state.on(outputTaken, next.content)
		next.content = outputEmpty
		all[name+" without a step"] = next
		apply(name+" with a step", next, outputHold, func(after *outputWorld) { after.storing = true })
	}
	put := func(content outputContent) {
		next := w
		next.content = max(w.content, content)
		apply(fmt.Sprintf("output %d", content), next, outputPut, func(*outputWorld) {})
	}
	put(outputText)
	put(outputOther)
	if w.storing {
		next := w
		next.storing = false
		apply("the step is stored", next, outputRelease, func(*outputWorld) {})
		return all // the actor decides nothing while it stores a step
	}
	decide("another message", w)
	if w.wakes > 0 {
		next := w
		next.wakes--
		all["a wake that is ignored"] = next
		if w.state == outputWoken {
			delete(all, "a wake that is ignored")
			decide("a wake", next)
		}
	}
	if w.slot {
		next := w
		next.slot = false
		if w.state == outputDeferred {
			next.state, _ = next.state.on(outputSlot, next.content)
			decide("the slot", next)
		} else {
			all["a slot that is ignored"] = next
		}
	}
	return all
}

// stuck returns why output would never reach the actor; empty if it does.
func (w outputWorld) stuck() string {
	switch {
	case w.content == outputEmpty || w.storing:
		return ""
	case w.state == outputWoken && w.wakes == 0:
		return "the actor counts as woken, and no message is under way"
	case w.state == outputDeferred && (!w.slot || w.content == outputOther):
		return "the output waits for a slot that does not come, or may not wait"
	case w.state == outputIdle || w.state == outputHeld:
		return "nobody wakes the actor"
	}
	return ""
}

// TestOutputAlwaysReachesTheActor visits every state that an output and its actor can reach.
func TestOutputAlwaysReachesTheActor(t *testing.T) {
	begin := outputWorld{}
	seen, next := map[outputWorld]string{begin: "the beginning"}, []outputWorld{begin}
	states := map[outputState]bool{}
	for len(next) > 0 {
		world := next[0]
		next = next[1:]
		states[world.state] = true
		if why := world.stuck(); why != "" {
			t.Fatalf("%s after: %s", why, seen[world])
		}
		for what, after := range world.steps() {
			if _, known := seen[after]; !known {
				seen[after] = seen[world] + ", " + what
				next = append(next, after)
			}
		}
	}
	if len(states) != int(outputStates) || len(seen) < 20 {
		t.Errorf("%d worlds with %d of %d states were reached", len(seen), len(states), outputStates)
	}
}

// TestTheOutputWakesTheActorOnlyForOutputThatItHasNotTaken checks every cell of the table.
func TestTheOutputWakesTheActorOnlyForOutputThatItHasNotTaken(t *testing.T) {
	for s := range outputStates {
		for e := range outputEvents {
			for c := range outputContents {
				next, action := s.on(e, c)
				answers := e == outputGranted || e == outputRefused // of the pacer, which was asked
				for rule, holds := range map[string]bool{
					"an actor that is woken counts as woken":                     action != outputWake || next == outputWoken,
					"the pacer is asked only about text, and before it answers":  action != outputAsk || c == outputText && next == outputIdle && !answers,
					"an actor is not woken twice":                                s != outputWoken || action == outputNothing || answers,
					"an actor that stores a step is woken after it":              s != outputHeld || action == outputNothing || e == outputRelease || answers,
					"only output wakes the actor, also output that has waited":   action != outputWake || c != outputEmpty || answers,
					"an actor that has taken everything waits":                   e != outputTaken || next == outputIdle && action == outputNothing,
					"an actor that stores a step holds the output, unless woken": e != outputHold || next == outputHeld || s == outputWoken && next == outputWoken,
					"text that has a slot waits, and other output does not":      s != outputDeferred || e != outputPut || (next == outputDeferred) == (c != outputOther),
					"a slot wakes the actor itself, and only for what it is for": e != outputSlot || action == outputNothing && (next == s || s == outputDeferred && next == outputWoken),
				} {
					if !holds {
						t.Errorf("state %d, event %d, content %d: state %d, action %d: %s", s, e, c, next, action, rule)
					}
				}
			}
		}
	}
}
