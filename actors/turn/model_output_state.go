package turn

// outputState decides when the output of a model wakes the actor of its turn. It is pure: a modelOutput passes it what happens,
// and does what it returns.
//
//	                ┌─────────── taken ───────────┐
//	                ▼                             │
//	released ──▶ outputIdle ── output ──▶ ask the pacer ── no slot, or it may not wait ──▶ outputWoken
//	   ▲            │                             │                                            ▲
//	   │            │ a step is stored            └── a slot ──▶ outputDeferred ── the slot, ──┘
//	   │            ▼                                                or output that may not wait
//	   └──────── outputHeld
type outputState uint8

// The states.
const (
	outputIdle     outputState = iota // the actor has taken everything, and waits for output
	outputWoken                       // the actor was woken, and will take the output
	outputHeld                        // the actor stores a step, and will release the output
	outputDeferred                    // text waits for a slot of the pacer
	outputStates
)

// outputEvent is what happens to the output of a call.
type outputEvent uint8

// The events.
const (
	outputPut     outputEvent = iota // the model has returned more
	outputTaken                      // the actor has taken the output
	outputHold                       // the actor stores a step
	outputRelease                    // that step is stored
	outputSlot                       // the slot of the waiting text has come
	outputGranted                    // the pacer gives the text a slot
	outputRefused                    // the pacer does not: the node is not busy
	outputEvents
)

// outputContent is what waits for the actor.
type outputContent uint8

// The contents.
const (
	outputEmpty outputContent = iota
	outputText                // only more text of a part that readers see already: it may wait for a slot
	outputOther
	outputContents
)

// outputAction is what follows from an event.
type outputAction uint8

// The actions.
const (
	outputNothing outputAction = iota
	outputWake                 // wake the actor
	outputAsk                  // ask the pacer for a slot: outputGranted or outputRefused follows
)

// outputStep is the next state, and what follows.
type outputStep struct {
	state  outputState
	action outputAction
}

// outputTransitions has the step of every event in every state, for output that was taken, for text only that may wait, and for
// any other output. Events that cannot happen in a state change nothing.
var outputTransitions = [outputStates][outputEvents][outputContents]outputStep{
	outputIdle: {
		outputPut:     {outputEmpty: {outputIdle, outputNothing}, outputText: {outputIdle, outputAsk}, outputOther: {outputWoken, outputWake}},
		outputTaken:   same(outputIdle, outputNothing),
		outputHold:    same(outputHeld, outputNothing),
		outputRelease: same(outputIdle, outputNothing),
		outputSlot:    same(outputIdle, outputNothing),
		outputGranted: same(outputDeferred, outputNothing),
		outputRefused: same(outputWoken, outputWake),
	},
	outputWoken: {
		outputPut:     same(outputWoken, outputNothing),
		outputTaken:   same(outputIdle, outputNothing),
		outputHold:    same(outputWoken, outputNothing), // the actor finds the message after its step
		outputRelease: same(outputWoken, outputNothing),
		outputSlot:    same(outputWoken, outputNothing),
		outputGranted: same(outputDeferred, outputNothing),
		outputRefused: same(outputWoken, outputWake),
	},
	outputHeld: {
		outputPut:     same(outputHeld, outputNothing),
		outputTaken:   same(outputIdle, outputNothing),
		outputHold:    same(outputHeld, outputNothing),
		outputRelease: {outputEmpty: {outputIdle, outputNothing}, outputText: {outputIdle, outputAsk}, outputOther: {outputWoken, outputWake}},
		outputSlot:    same(outputHeld, outputNothing),
		outputGranted: same(outputDeferred, outputNothing),
		outputRefused: same(outputWoken, outputWake),
	},
	outputDeferred: {
		outputPut:     {outputEmpty: {outputDeferred, outputNothing}, outputText: {outputDeferred, outputNothing}, outputOther: {outputWoken, outputWake}},
		outputTaken:   same(outputIdle, outputNothing),
		outputHold:    same(outputHeld, outputNothing),
		outputRelease: same(outputDeferred, outputNothing),
		outputSlot:    same(outputWoken, outputNothing), // the message with the slot wakes the actor
		outputGranted: same(outputDeferred, outputNothing),
		outputRefused: same(outputWoken, outputWake),
	},
}

// same returns the cells of an event that leads to the same step whatever waits.
func same(state outputState, action outputAction) (cells [outputContents]outputStep) {
	for content := range cells {
		cells[content] = outputStep{state, action}
	}
	return cells
}

// on returns the next state, and what follows from an event.
func (s outputState) on(e outputEvent, content outputContent) (outputState, outputAction) {
	step := outputTransitions[s][e][content]
	return step.state, step.action
}
