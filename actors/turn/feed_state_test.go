package turn

import (
	"fmt"
	"testing"
)

// feedWorld is one state of a feed together with its actor: what the feed contains, which messages are on their way to the
// actor, and whether the actor stores a step.
type feedWorld struct {
	state   feedState
	content feedContent
	wakes   int  // messages to the actor that say that there is output; at most two are counted
	slot    bool // the slot of the waiting text will come
	storing bool
}

// steps returns everything that can happen next.
func (w feedWorld) steps() map[string]feedWorld {
	all := map[string]feedWorld{}
	// apply passes an event to the state, with every answer that the pacer may give.
	apply := func(name string, next feedWorld, e feedEvent, then func(*feedWorld)) {
		state, action := next.state.on(e, next.content)
		for _, answer := range []feedEvent{feedGranted, feedRefused} {
			next, action := next, action
			next.state = state
			if action == feedAsk {
				next.state, action = state.on(answer, next.content)
				next.slot = next.slot || answer == feedGranted
			}
			if action == feedWake {
				next.wakes = min(next.wakes+1, 2)
			}
			then(&next)
			all[fmt.Sprintf("%s (%d)", name, answer)] = next
		}
	}
	// decide lets the actor take the output, and store a step or not.
	decide := func(name string, next feedWorld) {
		next.state, _ = next.state.on(feedTaken, next.content)
		next.content = feedEmpty
		all[name+" without a step"] = next
		apply(name+" with a step", next, feedHold, func(after *feedWorld) { after.storing = true })
	}
	put := func(content feedContent) {
		next := w
		next.content = max(w.content, content)
		apply(fmt.Sprintf("output %d", content), next, feedPut, func(*feedWorld) {})
	}
	put(feedText)
	put(feedOther)
	if w.storing {
		next := w
		next.storing = false
		apply("the step is stored", next, feedRelease, func(*feedWorld) {})
		return all // the actor decides nothing while it stores a step
	}
	decide("another message", w)
	if w.wakes > 0 {
		next := w
		next.wakes--
		all["a wake that is ignored"] = next
		if w.state == feedWoken {
			delete(all, "a wake that is ignored")
			decide("a wake", next)
		}
	}
	if w.slot {
		next := w
		next.slot = false
		if w.state == feedDeferred {
			next.state, _ = next.state.on(feedSlot, next.content)
			decide("the slot", next)
		} else {
			all["a slot that is ignored"] = next
		}
	}
	return all
}

// stuck returns why output would never reach the actor; empty if it does.
func (w feedWorld) stuck() string {
	switch {
	case w.content == feedEmpty || w.storing:
		return ""
	case w.state == feedWoken && w.wakes == 0:
		return "the actor counts as woken, and no message is under way"
	case w.state == feedDeferred && (!w.slot || w.content == feedOther):
		return "the output waits for a slot that does not come, or may not wait"
	case w.state == feedIdle || w.state == feedHeld:
		return "nobody wakes the actor"
	}
	return ""
}

// TestOutputAlwaysReachesTheActor visits every state that a feed and its actor can reach.
func TestOutputAlwaysReachesTheActor(t *testing.T) {
	begin := feedWorld{}
	seen, next := map[feedWorld]string{begin: "the beginning"}, []feedWorld{begin}
	states := map[feedState]bool{}
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
	if len(states) != int(feedStates) || len(seen) < 20 {
		t.Errorf("%d worlds with %d of %d states were reached", len(seen), len(states), feedStates)
	}
}

// TestAFeedWakesTheActorOnlyForOutputThatItHasNotTaken checks every cell of the table.
func TestAFeedWakesTheActorOnlyForOutputThatItHasNotTaken(t *testing.T) {
	for s := range feedStates {
		for e := range feedEvents {
			for c := range feedContents {
				next, action := s.on(e, c)
				answers := e == feedGranted || e == feedRefused // of the pacer, which was asked
				for rule, holds := range map[string]bool{
					"an actor that is woken counts as woken":                     action != feedWake || next == feedWoken,
					"the pacer is asked only about text, and before it answers":  action != feedAsk || c == feedText && next == feedIdle && !answers,
					"an actor is not woken twice":                                s != feedWoken || action == feedNothing || answers,
					"an actor that stores a step is woken after it":              s != feedHeld || action == feedNothing || e == feedRelease || answers,
					"only output wakes the actor, also output that has waited":   action != feedWake || c != feedEmpty || answers,
					"an actor that has taken everything waits":                   e != feedTaken || next == feedIdle && action == feedNothing,
					"an actor that stores a step holds the feed, unless woken":   e != feedHold || next == feedHeld || s == feedWoken && next == feedWoken,
					"text that has a slot waits, and other output does not":      s != feedDeferred || e != feedPut || (next == feedDeferred) == (c != feedOther),
					"a slot wakes the actor itself, and only for what it is for": e != feedSlot || action == feedNothing && (next == s || s == feedDeferred && next == feedWoken),
				} {
					if !holds {
						t.Errorf("state %d, event %d, content %d: state %d, action %d: %s", s, e, c, next, action, rule)
					}
				}
			}
		}
	}
}
