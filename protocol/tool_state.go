package protocol

// ToolState is the state of a tool call.
type ToolState string

// The states of a tool call.
const (
	ToolPending          ToolState = "pending"
	ToolAwaitingApproval ToolState = "awaiting_approval"
	ToolRunning          ToolState = "running"
	ToolSucceeded        ToolState = "succeeded"
	ToolFailed           ToolState = "failed"
	ToolRejected         ToolState = "rejected"
	ToolCancelled        ToolState = "cancelled"
	ToolOutcomeUnknown   ToolState = "outcome_unknown"
)

// ToolStates lists every state: the live states, then the terminal ones.
var ToolStates = []ToolState{
	ToolPending, ToolAwaitingApproval, ToolRunning,
	ToolSucceeded, ToolFailed, ToolRejected, ToolCancelled, ToolOutcomeUnknown,
}

// Terminal reports whether the state is final.
func (s ToolState) Terminal() bool {
	return s != ToolPending && s != ToolAwaitingApproval && s != ToolRunning
}

// ToolTrigger is a cause of a transition of a tool call.
type ToolTrigger string

// The triggers of a tool call.
const (
	ToolRuns          ToolTrigger = "run"
	ToolNeedsApproval ToolTrigger = "ask"     // the call needs an approval of the user
	ToolRefused       ToolTrigger = "refuse"  // the call does not run: its tool does not exist or is switched off, its input is invalid, or it is over a limit or a repetition
	ToolCancel        ToolTrigger = "cancel"  // the turn ends first
	ToolApproved      ToolTrigger = "approve" // the user approves the call
	ToolDenied        ToolTrigger = "reject"  // the user rejects the call, does not decide in time, or does not consent to what it reads
	ToolSucceeds      ToolTrigger = "succeed"
	ToolFails         ToolTrigger = "fail"
	ToolLost          ToolTrigger = "lose"  // the result is not known, and the call may have had an effect
	ToolRerun         ToolTrigger = "rerun" // the next owner runs the call again, because it has no effects
)

// ToolTransitions lists every legal transition of a tool call.
var ToolTransitions = []Transition[ToolState, ToolTrigger]{
	{ToolPending, ToolRuns, ToolRunning},
	{ToolPending, ToolNeedsApproval, ToolAwaitingApproval},
	{ToolPending, ToolRefused, ToolFailed},
	{ToolPending, ToolCancel, ToolCancelled},
	{ToolAwaitingApproval, ToolApproved, ToolRunning},
	{ToolAwaitingApproval, ToolDenied, ToolRejected},
	{ToolAwaitingApproval, ToolCancel, ToolCancelled},
	{ToolRunning, ToolSucceeds, ToolSucceeded},
	{ToolRunning, ToolFails, ToolFailed},
	{ToolRunning, ToolDenied, ToolRejected},
	{ToolRunning, ToolCancel, ToolCancelled},
	{ToolRunning, ToolLost, ToolOutcomeUnknown},
	{ToolRunning, ToolRerun, ToolRunning},
}

// NextToolState returns the state that a trigger leads to; ok is false when the transition is not legal.
func NextToolState(from ToolState, trigger ToolTrigger) (to ToolState, ok bool) {
	return next(ToolTransitions, from, trigger)
}
