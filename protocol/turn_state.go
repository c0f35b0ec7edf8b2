package protocol

// TurnState is the state of a turn.
type TurnState string

// The states of a turn. Queued, running, requires_action and recovering accept steering.
const (
	TurnQueued         TurnState = "queued"
	TurnRunning        TurnState = "running"
	TurnRequiresAction TurnState = "requires_action"
	TurnRecovering     TurnState = "recovering"
	TurnCancelling     TurnState = "cancelling"
	TurnCompleted      TurnState = "completed"
	TurnCancelled      TurnState = "cancelled"
	TurnFailed         TurnState = "failed"
	TurnIncomplete     TurnState = "incomplete"
)

// TurnStates lists every state: the live states, then the terminal ones.
var TurnStates = []TurnState{
	TurnQueued, TurnRunning, TurnRequiresAction, TurnRecovering, TurnCancelling,
	TurnCompleted, TurnCancelled, TurnFailed, TurnIncomplete,
}

// Terminal reports whether the state is final.
func (s TurnState) Terminal() bool {
	return s == TurnCompleted || s == TurnCancelled || s == TurnFailed || s == TurnIncomplete
}

// AcceptsSteering reports whether the state allows steering. The turn may refuse steering even in such a state; see
// TurnStateChanged.AcceptingSteering.
func (s TurnState) AcceptsSteering() bool {
	return s == TurnQueued || s == TurnRunning || s == TurnRequiresAction || s == TurnRecovering
}

// Transition is one legal transition of a state machine.
type Transition[State, Trigger ~string] struct {
	From    State
	Trigger Trigger
	To      State
}

// TurnTrigger is a cause of a transition of a turn.
type TurnTrigger string

// The triggers of a turn.
const (
	TurnBegins           TurnTrigger = "begin"             // the first model call starts
	TurnAdopted          TurnTrigger = "adopt"             // another owner adopts the turn
	TurnResumes          TurnTrigger = "resume"            // the turn continues after an adoption
	TurnCancel           TurnTrigger = "cancel"            // a cancel was accepted
	TurnNeedsApproval    TurnTrigger = "approval_needed"   // a tool call needs an approval
	TurnAwaitsApproval   TurnTrigger = "await_approval"    // the approval is still pending after an adoption
	TurnApprovalResolved TurnTrigger = "approval_resolved" // the call was approved or rejected
	TurnCompletes        TurnTrigger = "complete"          // the model has answered
	TurnStopsShort       TurnTrigger = "stop_short"        // the turn ends with a part of the answer
	TurnFails            TurnTrigger = "fail"              // the turn ends without an answer
	TurnCancelEnds       TurnTrigger = "cancelled"         // all work of the cancelled turn has stopped
)

// TurnTransitions lists every legal transition of a turn. The state machine rejects all others. Tests check the table
// exhaustively, and docs/states.md is generated from it.
var TurnTransitions = []Transition[TurnState, TurnTrigger]{
	{TurnQueued, TurnBegins, TurnRunning},
	{TurnQueued, TurnAdopted, TurnRecovering},
	{TurnQueued, TurnCancel, TurnCancelling},
	{TurnRunning, TurnNeedsApproval, TurnRequiresAction},
	{TurnRunning, TurnAdopted, TurnRecovering},
	{TurnRunning, TurnCancel, TurnCancelling},
	{TurnRunning, TurnCompletes, TurnCompleted},
	{TurnRunning, TurnStopsShort, TurnIncomplete},
	{TurnRunning, TurnFails, TurnFailed},
	{TurnRequiresAction, TurnApprovalResolved, TurnRunning},
	{TurnRequiresAction, TurnAdopted, TurnRecovering},
	{TurnRequiresAction, TurnCancel, TurnCancelling},
	{TurnRequiresAction, TurnStopsShort, TurnIncomplete},
	{TurnRequiresAction, TurnFails, TurnFailed},
	{TurnRecovering, TurnResumes, TurnRunning},
	{TurnRecovering, TurnAwaitsApproval, TurnRequiresAction},
	{TurnRecovering, TurnAdopted, TurnRecovering},
	{TurnRecovering, TurnCancel, TurnCancelling},
	{TurnRecovering, TurnCompletes, TurnCompleted},
	{TurnRecovering, TurnStopsShort, TurnIncomplete},
	{TurnRecovering, TurnFails, TurnFailed},
	{TurnCancelling, TurnAdopted, TurnCancelling},
	{TurnCancelling, TurnCancelEnds, TurnCancelled},
}

// NextTurnState returns the state that a trigger leads to; ok is false when the transition is not legal.
func NextTurnState(from TurnState, trigger TurnTrigger) (to TurnState, ok bool) {
	return next(TurnTransitions, from, trigger)
}

func next[State, Trigger ~string](table []Transition[State, Trigger], from State, trigger Trigger) (State, bool) {
	for _, t := range table {
		if t.From == from && t.Trigger == trigger {
			return t.To, true
		}
	}
	var none State
	return none, false
}

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
	ToolRefused       ToolTrigger = "refuse"  // there is no such tool
	ToolCancel        ToolTrigger = "cancel"  // the turn ends first
	ToolApproved      ToolTrigger = "approve" // the user approves the call
	ToolDenied        ToolTrigger = "reject"  // the user rejects the call, or does not consent to what it reads
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

// StopReason is the reason why a turn ended.
type StopReason string

// The reasons by terminal state: completed (end_turn, refusal), incomplete (max_tokens, deadline, budget_reached,
// tool_limit, error), cancelled (cancelled), failed (error).
const (
	StopEndTurn       StopReason = "end_turn"
	StopRefusal       StopReason = "refusal"
	StopMaxTokens     StopReason = "max_tokens"
	StopDeadline      StopReason = "deadline"
	StopBudgetReached StopReason = "budget_reached"
	StopToolLimit     StopReason = "tool_limit"
	StopError         StopReason = "error"
	StopCancelled     StopReason = "cancelled"
)

// StopReasons lists every reason.
var StopReasons = []StopReason{
	StopEndTurn, StopRefusal, StopMaxTokens, StopDeadline, StopBudgetReached, StopToolLimit, StopError, StopCancelled,
}
