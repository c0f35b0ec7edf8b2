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

// feedStep is the next state, and what follows.
type feedStep struct {
	state  feedState
	action feedAction
}

// feedTransitions has the step of every event in every state, for a feed that is empty, that contains only text that may wait, and
// that contains other output. Events that cannot happen in a state change nothing.
var feedTransitions = [feedStates][feedEvents][feedContents]feedStep{
	feedIdle: {
		feedPut:     {feedEmpty: {feedIdle, feedNothing}, feedText: {feedIdle, feedAsk}, feedOther: {feedWoken, feedWake}},
		feedTaken:   same(feedIdle, feedNothing),
		feedHold:    same(feedHeld, feedNothing),
		feedRelease: same(feedIdle, feedNothing),
		feedSlot:    same(feedIdle, feedNothing),
		feedGranted: same(feedDeferred, feedNothing),
		feedRefused: same(feedWoken, feedWake),
	},
	feedWoken: {
		feedPut:     same(feedWoken, feedNothing),
		feedTaken:   same(feedIdle, feedNothing),
		feedHold:    same(feedWoken, feedNothing), // the actor finds the message after its step
		feedRelease: same(feedWoken, feedNothing),
		feedSlot:    same(feedWoken, feedNothing),
		feedGranted: same(feedDeferred, feedNothing),
		feedRefused: same(feedWoken, feedWake),
	},
	feedHeld: {
		feedPut:     same(feedHeld, feedNothing),
		feedTaken:   same(feedIdle, feedNothing),
		feedHold:    same(feedHeld, feedNothing),
		feedRelease: {feedEmpty: {feedIdle, feedNothing}, feedText: {feedIdle, feedAsk}, feedOther: {feedWoken, feedWake}},
		feedSlot:    same(feedHeld, feedNothing),
		feedGranted: same(feedDeferred, feedNothing),
		feedRefused: same(feedWoken, feedWake),
	},
	feedDeferred: {
		feedPut:     {feedEmpty: {feedDeferred, feedNothing}, feedText: {feedDeferred, feedNothing}, feedOther: {feedWoken, feedWake}},
		feedTaken:   same(feedIdle, feedNothing),
		feedHold:    same(feedHeld, feedNothing),
		feedRelease: same(feedDeferred, feedNothing),
		feedSlot:    same(feedWoken, feedNothing), // the message with the slot wakes the actor
		feedGranted: same(feedDeferred, feedNothing),
		feedRefused: same(feedWoken, feedWake),
	},
}

// same returns the cells of an event that leads to the same step whatever the feed contains.
func same(state feedState, action feedAction) (cells [feedContents]feedStep) {
	for content := range cells {
		cells[content] = feedStep{state, action}
	}
	return cells
}

// on returns the next state, and what follows from an event.
func (s feedState) on(e feedEvent, content feedContent) (feedState, feedAction) {
	step := feedTransitions[s][e][content]
	return step.state, step.action
}
