package turn

// feedState decides when the output of a model wakes the actor of its turn. It is pure: a modelOutput passes it what happens,
// and does what it returns.
//
//	                ┌────────── taken ──────────┐
//	                ▼                           │
//	released ──▶ feedIdle ── output ──▶ ask the pacer ── no slot, or it may not wait ──▶ feedWoken
//	   ▲            │                           │                                          ▲
//	   │            │ a step is stored          └── a slot ──▶ feedDeferred ── the slot, ──┘
//	   │            ▼                                              or output that may not wait
//	   └──────── feedHeld
type feedState uint8

// The states.
const (
	feedIdle     feedState = iota // the actor has taken everything, and waits for output
	feedWoken                     // the actor was woken, and will take the output
	feedHeld                      // the actor stores a step, and will release the feed
	feedDeferred                  // text waits for a slot of the pacer
	feedStates
)

// feedEvent is what happens to a feed.
type feedEvent uint8

// The events.
const (
	feedPut     feedEvent = iota // the model has put output into the feed
	feedTaken                    // the actor has taken the output
	feedHold                     // the actor stores a step
	feedRelease                  // that step is stored
	feedSlot                     // the slot of the waiting text has come
	feedGranted                  // the pacer gives the text a slot
	feedRefused                  // the pacer does not: the node is not busy
	feedEvents
)

// feedContent is what a feed contains.
type feedContent uint8

// The contents.
const (
	feedEmpty feedContent = iota
	feedText              // only more text of a part that readers see already: it may wait for a slot
	feedOther
	feedContents
)

// feedAction is what follows from an event.
type feedAction uint8

// The actions.
const (
	feedNothing feedAction = iota
	feedWake               // wake the actor
	feedAsk                // ask the pacer for a slot: feedGranted or feedRefused follows
)

// on returns the next state, and what follows from an event.
func (s feedState) on(e feedEvent, content feedContent) (feedState, feedAction) {
	switch {
	case e == feedTaken:
		return feedIdle, feedNothing
	case e == feedHold && s != feedWoken: // an actor that was woken finds the message after its step
		return feedHeld, feedNothing
	case e == feedGranted:
		return feedDeferred, feedNothing
	case e == feedRefused:
		return feedWoken, feedWake
	case e == feedSlot && s == feedDeferred:
		return feedWoken, feedNothing
	case e == feedRelease && s == feedHeld, e == feedPut && s == feedIdle:
		switch content {
		case feedEmpty:
			return feedIdle, feedNothing
		case feedText:
			return feedIdle, feedAsk
		}
		return feedWoken, feedWake
	case e == feedPut && s == feedDeferred && content == feedOther:
		return feedWoken, feedWake
	}
	return s, feedNothing
}
