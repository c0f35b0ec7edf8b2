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
