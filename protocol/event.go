package protocol

import (
	"encoding/json"
	"time"
)

// EventType is the `type` of an event and the `event:` field of its server-sent event.
type EventType string

// Payload is the type-specific part of an event. Each event type has one struct. A published struct only gains fields.
type Payload interface{ EventType() EventType }

// EventSpec describes one event type for the schema, the golden files and the TypeScript types.
type EventSpec struct {
	Type EventType
	Doc  string
	New  func() Payload // a pointer to an empty payload
}

// Events is the registry of event types. Each event type is a struct and one line here.
var Events = []EventSpec{
	{"turn.started", "The turn exists: its messages and its first transition are durable.", func() Payload { return new(TurnStarted) }},
	{"turn.state", "The state changed, or whether the turn accepts steering. Clients must not derive either from text.", func() Payload { return new(TurnStateChanged) }},
	{"turn.routing", "Which profile and model produce the answer, and why. It is sent again, before the first output, if another model has to answer.", func() Payload { return new(TurnRouting) }},
	{"activity.progress", "Work in progress other than the answer itself.", func() Payload { return new(ActivityProgress) }},
	{"answer.started", "A part of the answer's text starts.", func() Payload { return new(AnswerStarted) }},
	{"answer.delta", "More text of an open text part.", func() Payload { return new(AnswerDelta) }},
	{"answer.completed", "The part is closed; text is complete and authoritative.", func() Payload { return new(AnswerCompleted) }},
	{"code.started", "A code block starts.", func() Payload { return new(CodeStarted) }},
	{"code.delta", "More code of an open code block.", func() Payload { return new(CodeDelta) }},
	{"code.completed", "The code block is closed; code is complete and authoritative.", func() Payload { return new(CodeCompleted) }},
	{"reasoning.started", "A summary of the model's reasoning starts.", func() Payload { return new(ReasoningStarted) }},
	{"reasoning.delta", "More text of an open summary.", func() Payload { return new(ReasoningDelta) }},
	{"reasoning.completed", "The summary is closed; text is complete and authoritative.", func() Payload { return new(ReasoningCompleted) }},
	{"tool.started", "A tool call is planned; it runs only after this event is durable.", func() Payload { return new(ToolStarted) }},
	{"tool.progress", "The progress of a running tool call.", func() Payload { return new(ToolProgress) }},
	{"tool.state", "The state of the tool call changed.", func() Payload { return new(ToolStateChanged) }},
	{"tool.completed", "The tool call ended. A failed tool does not fail the turn.", func() Payload { return new(ToolCompleted) }},
	{"approval.requested", "A tool call waits for an approval of the user.", func() Payload { return new(ApprovalRequested) }},
	{"approval.resolved", "The approval was decided, expired, or was cancelled with its turn.", func() Payload { return new(ApprovalResolved) }},
	{"steering.accepted", "A steering input for the live turn is durable; it will be either applied or returned, exactly once.", func() Payload { return new(SteeringAccepted) }},
	{"steering.applied", "The model has started to answer in the named step, whose request contained the input.", func() Payload { return new(SteeringApplied) }},
	{"steering.returned", "The input was not used; it becomes a held follow-up unless it was withdrawn.", func() Payload { return new(SteeringReturned) }},
	{"artifact.updated", "An artifact was created, or has a new version. It is durable.", func() Payload { return new(ArtifactUpdated) }},
	{"notice", "Information for the reader, for example that older messages were left out.", func() Payload { return new(Notice) }},
	{"turn.cancel_requested", "A cancel is durable; the turn will end as cancelled. A second cancel widens the scope.", func() Payload { return new(TurnCancelRequested) }},
	{"turn.recovering", "The turn was taken over after a restart, a drain, or the loss of its node or actor, and continues.", func() Payload { return new(TurnRecoveringEvent) }},
	{"turn.finished", "The turn has ended. This event is sent exactly once and is always the last one.", func() Payload { return new(TurnFinished) }},
}

// SnapshotSpec describes turn.snapshot, the only event that is not a log entry. It is built from committed events for a
// reader that requests mode=snapshot; its sequence equals covers_sequence.
var SnapshotSpec = EventSpec{"turn.snapshot", "The message so far; it replaces the events up to covers_sequence.", func() Payload { return new(TurnSnapshot) }}

// Usage counts the tokens of a turn.
type Usage struct {
	InputTokens       int  `json:"input_tokens" minimum:"0"`
	OutputTokens      int  `json:"output_tokens" minimum:"0"`
	ReasoningTokens   int  `json:"reasoning_tokens" minimum:"0"`
	CachedInputTokens int  `json:"cached_input_tokens" minimum:"0"`
	Estimated         bool `json:"estimated" doc:"True when the provider gave no count and the service estimated one."`
}

// TurnErrorCode is the reason why a turn failed or stopped early.
type TurnErrorCode string

// The reasons. Those of a model are the codes of llm.Error.
const (
	TurnInterrupted      TurnErrorCode = "interrupted"   // the service was restarted too often
	TurnUnrecoverable    TurnErrorCode = "unrecoverable" // its log cannot be read, or no actor can run it
	ModelUnavailable     TurnErrorCode = "model_unavailable"
	ModelRateLimited     TurnErrorCode = "model_rate_limited"
	ModelUnauthorized    TurnErrorCode = "model_unauthorized"
	ModelRejected        TurnErrorCode = "model_rejected"
	ModelContextExceeded TurnErrorCode = "model_context_exceeded"
	ModelCreditUsedUp    TurnErrorCode = "model_credit_used_up"
	ModelProtocol        TurnErrorCode = "model_protocol" // its answer could not be understood, or is too large
)

// TurnError is the reason why a turn failed or ended incomplete.
type TurnError struct {
	Code      TurnErrorCode `json:"code" doc:"For example model_unavailable, model_rate_limited, model_protocol or interrupted."`
	Detail    string        `json:"detail"`
	Retryable bool          `json:"retryable"`
}

// TurnStarted is the first event of every turn.
type TurnStarted struct {
	ConversationID     ConversationID `json:"conversation_id"`
	BranchID           BranchID       `json:"branch_id"`
	UserMessageID      MessageID      `json:"user_message_id"`
	AssistantMessageID MessageID      `json:"assistant_message_id"`
	ParentMessageID    *MessageID     `json:"parent_message_id" doc:"The message before the user's; null at the start of a conversation."`
	AcceptingSteering  bool           `json:"accepting_steering"`
}

// TurnStateChanged reports every change of the state or of the steering window.
type TurnStateChanged struct {
	State             TurnState `json:"state"`
	AcceptingSteering bool      `json:"accepting_steering"`
}

// Intelligence is the requested profile and the profile that it resolved to.
type Intelligence struct {
	Requested Profile `json:"requested"`
	Resolved  Profile `json:"resolved"`
}

// Completion is the limits of a turn.
type Completion struct {
	MaxOutputTokens int `json:"max_output_tokens"`
	MaxToolRounds   int `json:"max_tool_rounds"`
	DeadlineSeconds int `json:"deadline_s"`
}

// TurnRouting is the profile and the model that produce the answer, and the reason for the choice.
type TurnRouting struct {
	Profile          Profile      `json:"profile"`
	ModelID          string       `json:"model_id"`
	ModelRole        string       `json:"model_role"`
	Intelligence     Intelligence `json:"intelligence"`
	LatencyProfile   string       `json:"latency_profile"`
	ReasoningProfile string       `json:"reasoning_profile"`
	Completion       Completion   `json:"completion"`
	Reason           string       `json:"reason"`
	Route            int          `json:"route,omitempty" doc:"Position among the routes of the profile, from 1, of the one that answers. Absent: the first."`
}

// Progress is the completed part of a known amount of work.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// ActivityProgress describes work in progress other than the answer.
type ActivityProgress struct {
	PartID   PartID    `json:"part_id"`
	Activity string    `json:"activity" doc:"For example waiting_for_model, summarising or running_tools."`
	Label    string    `json:"label"`
	Progress *Progress `json:"progress,omitempty"`
}

// AnswerStarted opens a text part.
type AnswerStarted struct {
	PartID     PartID   `json:"part_id"`
	Index      int      `json:"index" doc:"Position among the parts of the message."`
	Format     string   `json:"format" enum:"markdown"`
	Supersedes []PartID `json:"supersedes,omitempty" doc:"Parts of an attempt that was cut off; they are removed from the message."`
}

// AnswerDelta carries text; offset counts the UTF-8 bytes of the part before it.
type AnswerDelta struct {
	PartID      PartID `json:"part_id"`
	Offset      int    `json:"offset" doc:"UTF-8 bytes of the part before this delta."`
	Delta       string `json:"delta"`
	Obfuscation string `json:"obfuscation,omitempty"`
}

// Citation points from text to a source.
type Citation struct {
	Index  int        `json:"index" doc:"From 1, in the order of the text."`
	Title  string     `json:"title"`
	URL    WebAddress `json:"url,omitempty,omitzero"`
	Marker string     `json:"marker,omitempty" doc:"What stands for the citation in the text, at each of its places."`
	FileID *FileID    `json:"file_id,omitempty" doc:"The file, if the source is one. The fields below locate the cited part of its text."`
	Kind   BlockKind  `json:"kind,omitempty" enum:"page,sheet,slide,chapter"`
	Page   int        `json:"page,omitempty" doc:"The number of the page, sheet, slide or chapter; absent: the whole file."`
	Offset int        `json:"offset,omitempty" doc:"The byte of the text at which the part starts."`
	Length int        `json:"length,omitempty" doc:"In bytes."`
}

// AnswerCompleted closes a text part.
type AnswerCompleted struct {
	PartID    PartID     `json:"part_id"`
	Text      string     `json:"text"`
	Citations []Citation `json:"citations"`
	Truncated bool       `json:"truncated,omitempty"`
}

// CodeStarted opens a code part.
type CodeStarted struct {
	PartID     PartID   `json:"part_id"`
	Index      int      `json:"index"`
	Language   string   `json:"language"`
	Filename   string   `json:"filename,omitempty"`
	ArtifactID string   `json:"artifact_id,omitempty"`
	Supersedes []PartID `json:"supersedes,omitempty"`
}

// CodeDelta carries code.
type CodeDelta struct {
	PartID PartID `json:"part_id"`
	Offset int    `json:"offset"`
	Delta  string `json:"delta"`
}

// CodeCompleted closes a code part.
type CodeCompleted struct {
	PartID    PartID `json:"part_id"`
	Code      string `json:"code"`
	Truncated bool   `json:"truncated,omitempty"`
}

// ReasoningStarted opens a reasoning summary.
type ReasoningStarted struct {
	PartID     PartID   `json:"part_id"`
	Index      int      `json:"index"`
	Supersedes []PartID `json:"supersedes,omitempty"`
}

// ReasoningDelta carries summary text.
type ReasoningDelta struct {
	PartID PartID `json:"part_id"`
	Offset int    `json:"offset"`
	Delta  string `json:"delta"`
}

// ReasoningCompleted closes a reasoning summary.
type ReasoningCompleted struct {
	PartID    PartID `json:"part_id"`
	Text      string `json:"text"`
	Truncated bool   `json:"truncated,omitempty"`
}

// ToolStarted announces a tool call before it runs.
type ToolStarted struct {
	PartID     PartID          `json:"part_id"`
	ToolID     ToolID          `json:"tool_id"`
	Index      int             `json:"index"`
	ToolName   string          `json:"tool_name"`
	Kind       string          `json:"kind" enum:"web_search,account_search,files,research,location,project,connector,memory,compute,artifact"`
	Title      string          `json:"title"`
	Input      json.RawMessage `json:"input"`
	State      ToolState       `json:"state"`
	Supersedes []PartID        `json:"supersedes,omitempty"`
}

// ToolProgress reports the progress of a running tool call.
type ToolProgress struct {
	PartID   PartID    `json:"part_id"`
	ToolID   ToolID    `json:"tool_id"`
	Label    string    `json:"label,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
}

// ToolStateChanged reports a state transition of a tool call.
type ToolStateChanged struct {
	PartID PartID    `json:"part_id"`
	ToolID ToolID    `json:"tool_id"`
	From   ToolState `json:"from"`
	State  ToolState `json:"state"`
}

// ToolCompleted ends a tool call with either an output or an error.
type ToolCompleted struct {
	PartID     PartID      `json:"part_id"`
	ToolID     ToolID      `json:"tool_id"`
	State      ToolState   `json:"state"`
	Outcome    ToolOutcome `json:"outcome,omitempty" enum:"ok,empty,failed,denied,unknown" doc:"What the result is; absent in events of earlier versions and for a cancelled call."`
	Output     string      `json:"output,omitempty"`
	Bytes      int         `json:"bytes,omitempty" doc:"Of the whole output."`
	Truncated  bool        `json:"truncated,omitempty" doc:"Output is the beginning of the whole output."`
	Repeated   bool        `json:"repeated,omitempty" doc:"The call did not run: this is the result of an identical earlier call of the turn."`
	ResultID   string      `json:"result_id,omitempty" doc:"With truncated: by this name the model can read on with read_more."`
	Sources    []Source    `json:"sources,omitempty" doc:"What the output shows, with the numbers by which the model can cite it."`
	Error      *ToolError  `json:"error,omitempty"`
	DurationMS int64       `json:"duration_ms"`
}

// MaxToolSources limits the sources of one tool call.
const MaxToolSources = 20

// FirstToolSource is the number of the first source that a tool finds in a turn. The files in the requests of the turn have smaller
// numbers.
const FirstToolSource = 200

// Source is a file or a web page that a model has read. It cites it by its number, a file with or without a page.
type Source struct {
	Number int         `json:"number" minimum:"1"`
	FileID FileID      `json:"file_id,omitzero" doc:"The file; absent for a web page."`
	URL    WebAddress  `json:"url,omitempty,omitzero" doc:"The address of a web page; absent for a file."`
	Title  string      `json:"title"`
	Size   int         `json:"size" doc:"Of the text, in bytes."`
	Blocks []TextBlock `json:"blocks,omitempty" doc:"The pages, sheets, slides or chapters that it has read; absent: the file has none."`
}

// SteeringAccepted reports an accepted steering input to every reader.
type SteeringAccepted struct {
	SteeringID       SteeringID `json:"steering_id"`
	ClientSteeringID string     `json:"client_steering_id"`
	Text             string     `json:"text"`
	Delivery         Delivery   `json:"delivery"`
}

// SteeringApplied names the model step that answers the input. It is committed with the first event of that answer.
type SteeringApplied struct {
	SteeringID SteeringID `json:"steering_id"`
	PartID     PartID     `json:"part_id" doc:"The notice part that shows the input at its position in the message."`
	Index      int        `json:"index"`
	Text       string     `json:"text"`
	Step       int        `json:"step"`
}

// ReturnReason is the reason why a steering input was not used.
type ReturnReason string

// The reasons: the user withdrew the input, or the turn ended first: as cancelled, as failed, or at a limit.
const (
	ReturnWithdrawn ReturnReason = "withdrawn"
	ReturnCancelled ReturnReason = "cancelled"
	ReturnFailed    ReturnReason = "failed"
	ReturnLimit     ReturnReason = "limit"
)

// SteeringReturned reports a steering input that was not used.
type SteeringReturned struct {
	SteeringID SteeringID   `json:"steering_id"`
	Reason     ReturnReason `json:"reason" enum:"withdrawn,cancelled,failed,limit"`
	FollowUpID *FollowUpID  `json:"follow_up_id" doc:"The held follow-up that stores the input; null when the input was withdrawn."`
}

// Notice is information for the reader that becomes part of the message.
type Notice struct {
	PartID PartID `json:"part_id"`
	Index  int    `json:"index"`
	Kind   string `json:"kind" doc:"For example context_trimmed."`
	Text   string `json:"text"`
}

// TurnCancelRequested reports a durable cancel. A second one of the same turn widens the scope.
type TurnCancelRequested struct {
	By           CancelledBy `json:"by" enum:"user,operator,deletion"`
	Scope        CancelScope `json:"scope" enum:"turn,turn_and_follow_ups" doc:"What happens to the queued follow-ups: turn holds them, turn_and_follow_ups cancels them."`
	SeenSequence *int64      `json:"seen_sequence"`
}

// RecoveryCause is the reason why a turn was taken over.
type RecoveryCause string

// The causes: the process restarted, its node was marked dead, its actor had ended, or its node drained.
const (
	CauseRestart   RecoveryCause = "restart"
	CauseNodeLost  RecoveryCause = "node_lost"
	CauseActorLost RecoveryCause = "actor_lost"
	CauseDrain     RecoveryCause = "drain"
)

// TurnRecoveringEvent reports that the turn was taken over.
type TurnRecoveringEvent struct {
	Attempt int           `json:"attempt"`
	Cause   RecoveryCause `json:"cause" enum:"restart,node_lost,actor_lost,drain"`
}

// TurnSnapshot replaces the events up to covers_sequence.
type TurnSnapshot struct {
	CoversSequence int64   `json:"covers_sequence"`
	Message        Message `json:"message"`
}

// TurnFinished is the last event of a turn.
type TurnFinished struct {
	Status       TurnState  `json:"status" enum:"completed,cancelled,failed,incomplete"`
	StopReason   StopReason `json:"stop_reason"`
	MessageID    MessageID  `json:"message_id"`
	LastSequence int64      `json:"last_sequence"`
	Usage        Usage      `json:"usage"`
	Error        *TurnError `json:"error"`
}

// The types of the payloads.
func (*TurnStarted) EventType() EventType         { return "turn.started" }
func (*TurnStateChanged) EventType() EventType    { return "turn.state" }
func (*TurnRouting) EventType() EventType         { return "turn.routing" }
func (*ActivityProgress) EventType() EventType    { return "activity.progress" }
func (*AnswerStarted) EventType() EventType       { return "answer.started" }
func (*AnswerDelta) EventType() EventType         { return "answer.delta" }
func (*AnswerCompleted) EventType() EventType     { return "answer.completed" }
func (*CodeStarted) EventType() EventType         { return "code.started" }
func (*CodeDelta) EventType() EventType           { return "code.delta" }
func (*CodeCompleted) EventType() EventType       { return "code.completed" }
func (*ReasoningStarted) EventType() EventType    { return "reasoning.started" }
func (*ReasoningDelta) EventType() EventType      { return "reasoning.delta" }
func (*ReasoningCompleted) EventType() EventType  { return "reasoning.completed" }
func (*ToolStarted) EventType() EventType         { return "tool.started" }
func (*ToolProgress) EventType() EventType        { return "tool.progress" }
func (*ToolStateChanged) EventType() EventType    { return "tool.state" }
func (*ToolCompleted) EventType() EventType       { return "tool.completed" }
func (*SteeringAccepted) EventType() EventType    { return "steering.accepted" }
func (*SteeringApplied) EventType() EventType     { return "steering.applied" }
func (*SteeringReturned) EventType() EventType    { return "steering.returned" }
func (*Notice) EventType() EventType              { return "notice" }
func (*TurnCancelRequested) EventType() EventType { return "turn.cancel_requested" }
func (*TurnRecoveringEvent) EventType() EventType { return "turn.recovering" }
func (*TurnSnapshot) EventType() EventType        { return "turn.snapshot" }
func (*TurnFinished) EventType() EventType        { return "turn.finished" }

// Envelope is the fields with which every event starts.
type Envelope struct {
	ProtocolVersion int       `json:"protocol_version" enum:"1"`
	TurnID          TurnID    `json:"turn_id"`
	Sequence        int64     `json:"sequence" minimum:"1" doc:"Contiguous from 1 within the turn."`
	Type            EventType `json:"type"`
	At              time.Time `json:"at" format:"date-time"`
}
