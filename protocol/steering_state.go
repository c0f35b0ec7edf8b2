package protocol

// InputState is the state of an input that steers a turn. Events report it: steering.accepted, steering.applied, steering.returned.
type InputState string

// The states of an input.
const (
	InputPending  InputState = "pending"
	InputApplied  InputState = "applied"  // the model has begun to answer a request that contains it
	InputReturned InputState = "returned" // it was not used; see ReturnReason
)

// InputStates lists every state: the open one, then the terminal ones.
var InputStates = []InputState{InputPending, InputApplied, InputReturned}

// InputTrigger is a cause of a transition of an input.
type InputTrigger string

// The triggers of an input.
const (
	InputAnswered  InputTrigger = "answered"
	InputWithdrawn InputTrigger = "withdrawn" // by the user
	InputLeft      InputTrigger = "left"      // the turn ended first
)

// InputTransitions lists every legal transition of an input.
var InputTransitions = []Transition[InputState, InputTrigger]{
	{InputPending, InputAnswered, InputApplied},
	{InputPending, InputWithdrawn, InputReturned},
	{InputPending, InputLeft, InputReturned},
}

// NextInputState returns the state that a trigger leads to; ok is false when the transition is not legal.
func NextInputState(from InputState, trigger InputTrigger) (to InputState, ok bool) {
	return next(InputTransitions, from, trigger)
}

// Trigger returns the trigger that an input which was returned for this reason had.
func (r ReturnReason) Trigger() InputTrigger {
	if r == ReturnWithdrawn {
		return InputWithdrawn
	}
	return InputLeft
}
