package protocol

import "time"

// ResearchEvents is the registry of the event types of research tasks. The envelope of their events has task_id where that of
// a turn has turn_id.
var ResearchEvents = []EventSpec{
	{"task.started", "The task exists and waits for a slot.", func() Payload { return new(ResearchStarted) }},
	{"task.state", "The state changed.", func() Payload { return new(ResearchStateChanged) }},
	{"task.phase", "The task does something else now.", func() Payload { return new(ResearchPhaseChanged) }},
	{"task.plan", "The plan has other questions.", func() Payload { return new(ResearchPlanned) }},
	{"task.step", "The state of a question of the plan changed.", func() Payload { return new(ResearchStepChanged) }},
	{"task.source", "A source was found, read, kept or given up.", func() Payload { return new(ResearchSourceChanged) }},
	{"task.progress", "How far the task is, and what it has spent.", func() Payload { return new(ResearchProgressed) }},
	{"task.steering", "An input of the user was accepted, applied or returned.", func() Payload { return new(ResearchSteered) }},
	{"task.finished", "The task has ended. This event is sent exactly once and is always the last one.", func() Payload { return new(ResearchFinished) }},
}

// ResearchStarted is the first event of every task.
type ResearchStarted struct {
	ConversationID ConversationID   `json:"conversation_id"`
	Question       string           `json:"question"`
	Depth          ResearchDepth    `json:"depth" enum:"quick,standard,deep"`
	Sources        []ResearchSource `json:"sources"`
	Budget         ResearchAmounts  `json:"budget"`
}

// ResearchStateChanged reports every transition, except those to the same state.
type ResearchStateChanged struct {
	State ResearchState `json:"state"`
}

// ResearchPhaseChanged reports a phase.
type ResearchPhaseChanged struct {
	Phase ResearchPhase `json:"phase" enum:"planning,searching,reading,synthesizing"`
}

// ResearchPlanned reports the whole plan after a change of its questions.
type ResearchPlanned struct {
	Plan []ResearchStep `json:"plan"`
}

// ResearchStepChanged reports the state of one question of the plan.
type ResearchStepChanged struct {
	StepID string            `json:"step_id"`
	State  ResearchStepState `json:"state" enum:"open,running,done,struck,skipped"`
}

// ResearchSourceChanged reports a source.
type ResearchSourceChanged struct {
	SourceID string              `json:"source_id"`
	State    ResearchSourceState `json:"state" enum:"found,reading,read,kept,unused,failed,merged"`
	Kind     ResearchSource      `json:"kind" enum:"web,files,conversations"`
	Title    string              `json:"title"`
	URL      *string             `json:"url"`
	Reason   string              `json:"reason" doc:"Why the source could not be read, or which source it is the same as; empty otherwise."`
}

// ResearchProgressed reports the progress.
type ResearchProgressed struct {
	Progress ResearchProgress `json:"progress"`
	Spent    ResearchAmounts  `json:"spent"`
}

// ResearchSteeringOutcome is what became of an input of the user.
type ResearchSteeringOutcome string

// The outcomes of an input.
const (
	ResearchAccepted ResearchSteeringOutcome = "accepted" // it is stored, and not applied yet
	ResearchApplied  ResearchSteeringOutcome = "applied"  // the named step takes it into account
	ResearchReturned ResearchSteeringOutcome = "returned" // the task has ended without it; an input becomes a held follow-up
)

// ResearchSteered reports an input of the user.
type ResearchSteered struct {
	SteeringID SteeringID              `json:"steering_id"`
	Outcome    ResearchSteeringOutcome `json:"outcome" enum:"accepted,applied,returned"`
	Kind       ResearchSteeringType    `json:"kind" enum:"input,plan,write_now"`
	Text       string                  `json:"text" doc:"The input; empty for other types."`
	StepID     *string                 `json:"step_id" doc:"The step that takes the input into account, for example revise-2; null: none."`
	FollowUpID *FollowUpID             `json:"follow_up_id,omitempty" doc:"The held follow-up that a returned input has become."`
}

// ResearchFinished is the last event of a task.
type ResearchFinished struct {
	State        ResearchState    `json:"state" enum:"completed,failed,cancelled"`
	Failure      *ResearchFailure `json:"failure"`
	ArtifactID   *ArtifactID      `json:"artifact_id"`
	MessageID    *MessageID       `json:"message_id"`
	LastSequence int64            `json:"last_sequence"`
}

// The types of the payloads.
func (*ResearchStarted) EventType() EventType       { return "task.started" }
func (*ResearchStateChanged) EventType() EventType  { return "task.state" }
func (*ResearchPhaseChanged) EventType() EventType  { return "task.phase" }
func (*ResearchPlanned) EventType() EventType       { return "task.plan" }
func (*ResearchStepChanged) EventType() EventType   { return "task.step" }
func (*ResearchSourceChanged) EventType() EventType { return "task.source" }
func (*ResearchProgressed) EventType() EventType    { return "task.progress" }
func (*ResearchSteered) EventType() EventType       { return "task.steering" }
func (*ResearchFinished) EventType() EventType      { return "task.finished" }

// ResearchEnvelope is the fields with which every event of a research task starts.
type ResearchEnvelope struct {
	ProtocolVersion int       `json:"protocol_version" enum:"1"`
	TaskID          TaskID    `json:"task_id"`
	Sequence        int64     `json:"sequence" minimum:"1" doc:"Contiguous from 1 within the task."`
	Type            EventType `json:"type"`
	At              time.Time `json:"at" format:"date-time"`
}

// AppendResearchEvents is AppendEvents for the events of a research task.
func AppendResearchEvents(b []byte, task TaskID, first int64, at time.Time, events []Payload) ([]byte, error) {
	return appendEventsOf(b, "task_id", task.String(), first, at, events)
}
