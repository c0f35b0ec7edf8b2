package protocol

// TurnState is where a live turn stands.
type TurnState string

// The states of a turn. Queued, running, requires_action and recovering take steering.
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

// TurnStates lists every state, in the order of a turn's life.
var TurnStates = []TurnState{
	TurnQueued, TurnRunning, TurnRequiresAction, TurnRecovering, TurnCancelling,
	TurnCompleted, TurnCancelled, TurnFailed, TurnIncomplete,
}

// Terminal says whether nothing follows the state.
func (s TurnState) Terminal() bool {
	return s == TurnCompleted || s == TurnCancelled || s == TurnFailed || s == TurnIncomplete
}

// TakesInput says whether the state alone allows steering; the machine may have closed the window within it.
func (s TurnState) TakesInput() bool {
	return s == TurnQueued || s == TurnRunning || s == TurnRequiresAction || s == TurnRecovering
}

// Transition is one legal move of a state machine.
type Transition[S ~string] struct {
	From    S
	Trigger string
	To      S
}

// TurnTransitions is every legal move of a turn. What is not here cannot happen; the machine's tests walk it
// exhaustively and docs/states.md is printed from it.
var TurnTransitions = []Transition[TurnState]{
	{TurnQueued, "begin", TurnRunning},
	{TurnQueued, "adopt", TurnRecovering},
	{TurnQueued, "cancel", TurnCancelling},
	{TurnRunning, "approval_needed", TurnRequiresAction},
	{TurnRunning, "adopt", TurnRecovering},
	{TurnRunning, "cancel", TurnCancelling},
	{TurnRunning, "complete", TurnCompleted},
	{TurnRunning, "stop_short", TurnIncomplete},
	{TurnRunning, "fail", TurnFailed},
	{TurnRequiresAction, "approval_resolved", TurnRunning},
	{TurnRequiresAction, "adopt", TurnRecovering},
	{TurnRequiresAction, "cancel", TurnCancelling},
	{TurnRequiresAction, "stop_short", TurnIncomplete},
	{TurnRequiresAction, "fail", TurnFailed},
	{TurnRecovering, "resume", TurnRunning},
	{TurnRecovering, "await_approval", TurnRequiresAction},
	{TurnRecovering, "adopt", TurnRecovering},
	{TurnRecovering, "cancel", TurnCancelling},
	{TurnRecovering, "complete", TurnCompleted},
	{TurnRecovering, "stop_short", TurnIncomplete},
	{TurnRecovering, "fail", TurnFailed},
	{TurnCancelling, "adopt", TurnCancelling},
	{TurnCancelling, "cancelled", TurnCancelled},
}

// NextTurnState looks a move up; ok is false when it is not legal.
func NextTurnState(from TurnState, trigger string) (to TurnState, ok bool) {
	return next(TurnTransitions, from, trigger)
}

func next[S ~string](table []Transition[S], from S, trigger string) (S, bool) {
	for _, t := range table {
		if t.From == from && t.Trigger == trigger {
			return t.To, true
		}
	}
	var none S
	return none, false
}

// ToolState is where one tool call stands.
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

// ToolStates lists every state, in the order of a call's life.
var ToolStates = []ToolState{
	ToolPending, ToolAwaitingApproval, ToolRunning,
	ToolSucceeded, ToolFailed, ToolRejected, ToolCancelled, ToolOutcomeUnknown,
}

// Terminal says whether nothing follows the state.
func (s ToolState) Terminal() bool {
	return s != ToolPending && s != ToolAwaitingApproval && s != ToolRunning
}

// ToolTransitions is every legal move of a tool call.
var ToolTransitions = []Transition[ToolState]{
	{ToolPending, "run", ToolRunning},
	{ToolPending, "ask", ToolAwaitingApproval},
	{ToolPending, "refuse", ToolFailed},
	{ToolPending, "cancel", ToolCancelled},
	{ToolAwaitingApproval, "approve", ToolRunning},
	{ToolAwaitingApproval, "reject", ToolRejected},
	{ToolAwaitingApproval, "cancel", ToolCancelled},
	{ToolRunning, "succeed", ToolSucceeded},
	{ToolRunning, "fail", ToolFailed},
	{ToolRunning, "cancel", ToolCancelled},
	{ToolRunning, "lose", ToolOutcomeUnknown},
	{ToolRunning, "rerun", ToolRunning},
}

// NextToolState looks a move up; ok is false when it is not legal.
func NextToolState(from ToolState, trigger string) (to ToolState, ok bool) {
	return next(ToolTransitions, from, trigger)
}

// StopReason says why a turn ended.
type StopReason string

// The reasons, by terminal state: completed (end_turn, refusal), incomplete (max_tokens, deadline, budget_reached,
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
