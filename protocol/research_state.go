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

// The phases, in their order. A task with another round returns from reading to searching.
const (
	ResearchPlanning     ResearchPhase = "planning"
	ResearchSearching    ResearchPhase = "searching"
	ResearchReading      ResearchPhase = "reading"
	ResearchSynthesizing ResearchPhase = "synthesizing"
)

// ResearchPhases lists every phase.
var ResearchPhases = []ResearchPhase{ResearchPlanning, ResearchSearching, ResearchReading, ResearchSynthesizing}

// ResearchPhaseTrigger is a cause of a transition of the phase.
type ResearchPhaseTrigger string

// The triggers of the phase.
const (
	ResearchPhaseSearches ResearchPhaseTrigger = "search" // a round begins
	ResearchPhaseReads    ResearchPhaseTrigger = "read"   // all searches of the round are over
	ResearchPhaseWrites   ResearchPhaseTrigger = "write"  // no round follows, the user wants the report, or the time is used up
)

// ResearchPhaseTransitions lists every legal transition of the phase of a running task. The state machine rejects all others.
var ResearchPhaseTransitions = []Transition[ResearchPhase, ResearchPhaseTrigger]{
	{ResearchPlanning, ResearchPhaseSearches, ResearchSearching},
	{ResearchPlanning, ResearchPhaseWrites, ResearchSynthesizing},
	{ResearchSearching, ResearchPhaseReads, ResearchReading},
	{ResearchSearching, ResearchPhaseWrites, ResearchSynthesizing},
	{ResearchReading, ResearchPhaseSearches, ResearchSearching},
	{ResearchReading, ResearchPhaseWrites, ResearchSynthesizing},
}

// NextResearchPhase returns the phase that a trigger leads to; ok is false when the transition is not legal.
func NextResearchPhase(from ResearchPhase, trigger ResearchPhaseTrigger) (to ResearchPhase, ok bool) {
	return next(ResearchPhaseTransitions, from, trigger)
}

// ResearchStepState is the state of a question of a plan.
type ResearchStepState string

// The states of a question of a plan.
const (
	ResearchStepOpen    ResearchStepState = "open"
	ResearchStepRunning ResearchStepState = "running"
	ResearchStepDone    ResearchStepState = "done"
	ResearchStepStruck  ResearchStepState = "struck" // by the user, or by a step that revised the plan
	ResearchStepSkipped ResearchStepState = "skipped"
)

// ResearchStepStates lists every state: the open states, then the terminal ones.
var ResearchStepStates = []ResearchStepState{
	ResearchStepOpen, ResearchStepRunning, ResearchStepDone, ResearchStepStruck, ResearchStepSkipped,
}

// Terminal reports whether the state is final.
func (s ResearchStepState) Terminal() bool { return s != ResearchStepOpen && s != ResearchStepRunning }

// ResearchStepTrigger is a cause of a transition of a question.
type ResearchStepTrigger string

// The triggers of a question.
const (
	ResearchStepSearches ResearchStepTrigger = "search" // a round of the task searches it
	ResearchStepFinishes ResearchStepTrigger = "finish" // the round has ended, or has found something
	ResearchStepStrikes  ResearchStepTrigger = "strike"
	ResearchStepSkips    ResearchStepTrigger = "skip" // the task ends, or begins to write, before something was found
)

// ResearchStepTransitions lists every legal transition of a question. The state machine rejects all others.
var ResearchStepTransitions = []Transition[ResearchStepState, ResearchStepTrigger]{
	{ResearchStepOpen, ResearchStepSearches, ResearchStepRunning},
	{ResearchStepOpen, ResearchStepStrikes, ResearchStepStruck},
	{ResearchStepOpen, ResearchStepSkips, ResearchStepSkipped},
	{ResearchStepRunning, ResearchStepFinishes, ResearchStepDone},
	{ResearchStepRunning, ResearchStepStrikes, ResearchStepStruck},
	{ResearchStepRunning, ResearchStepSkips, ResearchStepSkipped},
}

// NextResearchStepState returns the state that a trigger leads to; ok is false when the transition is not legal.
func NextResearchStepState(from ResearchStepState, trigger ResearchStepTrigger) (to ResearchStepState, ok bool) {
	return next(ResearchStepTransitions, from, trigger)
}

// ResearchSourceState is what a research task knows of a source.
type ResearchSourceState string

// The states of a source.
const (
	SourceFound   ResearchSourceState = "found"
	SourceReading ResearchSourceState = "reading"
	SourceRead    ResearchSourceState = "read" // what it contributes is not known yet
	SourceKept    ResearchSourceState = "kept"
	SourceUnused  ResearchSourceState = "unused" // nothing in it answers a question, or the search had ended before it was used
	SourceFailed  ResearchSourceState = "failed" // it could not be read
	SourceMerged  ResearchSourceState = "merged" // it is another address of a source that the task has
)

// ResearchSourceStates lists every state: the open states, then the terminal ones.
var ResearchSourceStates = []ResearchSourceState{
	SourceFound, SourceReading, SourceRead, SourceKept, SourceUnused, SourceFailed, SourceMerged,
}

// Terminal reports whether the state is final.
func (s ResearchSourceState) Terminal() bool {
	return s != SourceFound && s != SourceReading && s != SourceRead
}

// ResearchSourceTrigger is a cause of a transition of a source.
type ResearchSourceTrigger string

// The triggers of a source.
const (
	SourceOpens    ResearchSourceTrigger = "open"    // the step that reads it starts
	SourceArrives  ResearchSourceTrigger = "arrive"  // its text was read
	SourceFails    ResearchSourceTrigger = "fail"    // its text could not be read
	SourceMerges   ResearchSourceTrigger = "merge"   // its text is that of an earlier source
	SourceKeeps    ResearchSourceTrigger = "keep"    // an excerpt of it answers a question
	SourceDiscards ResearchSourceTrigger = "discard" // nothing of it is used
)

// ResearchSourceTransitions lists every legal transition of a source. The state machine rejects all others.
var ResearchSourceTransitions = []Transition[ResearchSourceState, ResearchSourceTrigger]{
	{SourceFound, SourceOpens, SourceReading},
	{SourceFound, SourceDiscards, SourceUnused},
	{SourceReading, SourceArrives, SourceRead},
	{SourceReading, SourceFails, SourceFailed},
	{SourceReading, SourceDiscards, SourceUnused},
	{SourceRead, SourceMerges, SourceMerged},
	{SourceRead, SourceKeeps, SourceKept},
	{SourceRead, SourceDiscards, SourceUnused},
}

// NextResearchSourceState returns the state that a trigger leads to; ok is false when the transition is not legal.
func NextResearchSourceState(from ResearchSourceState, trigger ResearchSourceTrigger) (to ResearchSourceState, ok bool) {
	return next(ResearchSourceTransitions, from, trigger)
}
