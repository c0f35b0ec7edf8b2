package protocol

// ResearchState is the state of a research task.
type ResearchState string

// The states of a research task.
const (
	ResearchQueued     ResearchState = "queued"
	ResearchRunning    ResearchState = "running"
	ResearchCancelling ResearchState = "cancelling"
	ResearchCompleted  ResearchState = "completed"
	ResearchFailed     ResearchState = "failed"
	ResearchCancelled  ResearchState = "cancelled"
)

// ResearchStates lists every state: the open states, then the terminal ones.
var ResearchStates = []ResearchState{
	ResearchQueued, ResearchRunning, ResearchCancelling, ResearchCompleted, ResearchFailed, ResearchCancelled,
}

// Terminal reports whether the state is final.
func (s ResearchState) Terminal() bool {
	return s == ResearchCompleted || s == ResearchFailed || s == ResearchCancelled
}

// ResearchTrigger is a cause of a transition of a research task.
type ResearchTrigger string

// The triggers of a research task.
const (
	ResearchBegins  ResearchTrigger = "begin"    // a node has a slot for the task
	ResearchAdopted ResearchTrigger = "adopt"    // another owner continues the task
	ResearchCancel  ResearchTrigger = "cancel"   // by the user, or because the conversation was deleted
	ResearchStopped ResearchTrigger = "stop"     // the work has stopped after a cancel
	ResearchReports ResearchTrigger = "complete" // the report is stored
	ResearchFails   ResearchTrigger = "fail"
)

// ResearchTransitions lists every legal transition of a research task. The state machine rejects all others.
var ResearchTransitions = []Transition[ResearchState, ResearchTrigger]{
	{ResearchQueued, ResearchBegins, ResearchRunning},
	{ResearchQueued, ResearchCancel, ResearchCancelling},
	{ResearchQueued, ResearchFails, ResearchFailed},
	{ResearchRunning, ResearchAdopted, ResearchRunning},
	{ResearchRunning, ResearchCancel, ResearchCancelling},
	{ResearchRunning, ResearchReports, ResearchCompleted},
	{ResearchRunning, ResearchFails, ResearchFailed},
	{ResearchCancelling, ResearchAdopted, ResearchCancelling},
	{ResearchCancelling, ResearchStopped, ResearchCancelled},
}

// NextResearchState returns the state that a trigger leads to; ok is false when the transition is not legal.
func NextResearchState(from ResearchState, trigger ResearchTrigger) (to ResearchState, ok bool) {
	return next(ResearchTransitions, from, trigger)
}

// ResearchPhase is what a running research task does.
type ResearchPhase string

// The phases, in their order. A task that follows up contradictions returns from reading to searching.
const (
	ResearchPlanning     ResearchPhase = "planning"
	ResearchSearching    ResearchPhase = "searching"
	ResearchReading      ResearchPhase = "reading"
	ResearchSynthesizing ResearchPhase = "synthesizing"
)
