package protocol

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// EventType is the `type` of an event and the `event:` of its frame.
type EventType string

// Payload is the part of an event that its type decides. One struct an event; once sent, a struct only ever gains fields.
type Payload interface{ EventType() EventType }

// EventSpec describes one event for the schema, the golden files and the TypeScript types.
type EventSpec struct {
	Type EventType
	Doc  string
	New  func() Payload // a pointer to an empty payload
}

// Events is the registry: an event is its struct and one line here.
var Events = []EventSpec{
	{"turn.started", "The turn exists: its messages and its first transition are durable.", func() Payload { return new(TurnStarted) }},
	{"turn.state", "The state or the steering window changed. Clients derive neither from text.", func() Payload { return new(TurnStateChanged) }},
	{"turn.routing", "Which profile and model answer, and why.", func() Payload { return new(TurnRouting) }},
	{"activity.progress", "What is being done beside the answer.", func() Payload { return new(ActivityProgress) }},
	{"answer.started", "A part of the answer's text begins.", func() Payload { return new(AnswerStarted) }},
	{"answer.delta", "More text of an open part.", func() Payload { return new(AnswerDelta) }},
	{"answer.completed", "The part is closed; text is whole and authoritative.", func() Payload { return new(AnswerCompleted) }},
	{"code.started", "A block of code begins.", func() Payload { return new(CodeStarted) }},
	{"code.delta", "More code of an open part.", func() Payload { return new(CodeDelta) }},
	{"code.completed", "The block is closed; code is whole and authoritative.", func() Payload { return new(CodeCompleted) }},
	{"reasoning.started", "A summary of the model's reasoning begins.", func() Payload { return new(ReasoningStarted) }},
	{"reasoning.delta", "More of the summary.", func() Payload { return new(ReasoningDelta) }},
	{"reasoning.completed", "The summary is closed; text is whole and authoritative.", func() Payload { return new(ReasoningCompleted) }},
	{"tool.started", "A tool call is intended; it runs only after this was durable.", func() Payload { return new(ToolStarted) }},
	{"tool.progress", "How far a running tool is.", func() Payload { return new(ToolProgress) }},
	{"tool.state", "The tool call moved to another state.", func() Payload { return new(ToolStateChanged) }},
	{"tool.completed", "The tool call ended. A failed tool does not fail the turn.", func() Payload { return new(ToolCompleted) }},
	{"steering.accepted", "An input for the live turn is durable; it will end applied or returned, once.", func() Payload { return new(SteeringAccepted) }},
	{"steering.applied", "The named model step, whose request contained the input, has begun to answer.", func() Payload { return new(SteeringApplied) }},
	{"steering.returned", "The input was not used; it is parked as a held follow-up unless it was withdrawn.", func() Payload { return new(SteeringReturned) }},
	{"notice", "Something the reader should know, as that older messages were left out.", func() Payload { return new(Notice) }},
	{"turn.cancel_requested", "A cancel is durable; from here on the turn ends cancelled. A second one widens the scope.", func() Payload { return new(TurnCancelRequested) }},
	{"turn.recovering", "Another run of the service took the turn over and goes on.", func() Payload { return new(TurnRecoveringEvent) }},
	{"turn.finished", "The end. Exactly once, always last.", func() Payload { return new(TurnFinished) }},
}

// TurnSnapshot is the one payload that is not a log entry: it is made from committed events for a reader who asks for
// mode=snapshot; its sequence equals covers_sequence.
var SnapshotSpec = EventSpec{"turn.snapshot", "The message so far, in place of the events up to covers_sequence.", func() Payload { return new(TurnSnapshot) }}

// Usage counts the tokens of a turn.
type Usage struct {
	InputTokens       int  `json:"input_tokens" minimum:"0"`
	OutputTokens      int  `json:"output_tokens" minimum:"0"`
	ReasoningTokens   int  `json:"reasoning_tokens" minimum:"0"`
	CachedInputTokens int  `json:"cached_input_tokens" minimum:"0"`
	Estimated         bool `json:"estimated" doc:"True when the provider gave no count and the service estimated one."`
}

// TurnError says why a turn failed or stopped short.
type TurnError struct {
	Code      string `json:"code" doc:"As model_unavailable, model_rate_limited, model_protocol, interrupted."`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
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

// TurnStateChanged tells every change of the state or of the steering window.
type TurnStateChanged struct {
	State             TurnState `json:"state"`
	AcceptingSteering bool      `json:"accepting_steering"`
}

// Intelligence tells which profile was asked for and which answers.
type Intelligence struct {
	Requested Profile `json:"requested"`
	Resolved  Profile `json:"resolved"`
}

// Completion bounds a turn.
type Completion struct {
	MaxOutputTokens int `json:"max_output_tokens"`
	MaxToolRounds   int `json:"max_tool_rounds"`
	DeadlineSeconds int `json:"deadline_s"`
}

// TurnRouting says who answers and why.
type TurnRouting struct {
	Profile          Profile      `json:"profile"`
	ModelID          string       `json:"model_id"`
	ModelRole        string       `json:"model_role"`
	Intelligence     Intelligence `json:"intelligence"`
	LatencyProfile   string       `json:"latency_profile"`
	ReasoningProfile string       `json:"reasoning_profile"`
	Completion       Completion   `json:"completion"`
	Reason           string       `json:"reason"`
}

// Progress counts work that is done of work that is known.
type Progress struct {
	Done  int `json:"done"`
	Total int `json:"total"`
}

// ActivityProgress names what is being done.
type ActivityProgress struct {
	PartID   PartID    `json:"part_id"`
	Activity string    `json:"activity" doc:"As waiting_for_model, summarising, running_tools."`
	Label    string    `json:"label"`
	Progress *Progress `json:"progress,omitempty"`
}

// AnswerStarted opens a text part.
type AnswerStarted struct {
	PartID     PartID   `json:"part_id"`
	Index      int      `json:"index" doc:"Position among the parts of the message."`
	Format     string   `json:"format" enum:"markdown"`
	Supersedes []PartID `json:"supersedes,omitempty" doc:"Parts of a cut attempt that leave the message."`
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
	Index int    `json:"index"`
	Title string `json:"title"`
	URL   string `json:"url,omitempty"`
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

// ToolProgress tells how far a tool is.
type ToolProgress struct {
	PartID   PartID    `json:"part_id"`
	ToolID   ToolID    `json:"tool_id"`
	Label    string    `json:"label,omitempty"`
	Progress *Progress `json:"progress,omitempty"`
}

// ToolStateChanged reports a tool call's move.
type ToolStateChanged struct {
	PartID PartID    `json:"part_id"`
	ToolID ToolID    `json:"tool_id"`
	From   ToolState `json:"from"`
	State  ToolState `json:"state"`
}

// ToolError says why a tool call has no output.
type ToolError struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// ToolCompleted ends a tool call: output, or error.
type ToolCompleted struct {
	PartID     PartID     `json:"part_id"`
	ToolID     ToolID     `json:"tool_id"`
	State      ToolState  `json:"state"`
	Output     string     `json:"output,omitempty"`
	Error      *ToolError `json:"error,omitempty"`
	DurationMS int64      `json:"duration_ms"`
}

// SteeringAccepted tells every reader of an input that was taken.
type SteeringAccepted struct {
	SteeringID       SteeringID `json:"steering_id"`
	ClientSteeringID string     `json:"client_steering_id"`
	Text             string     `json:"text"`
	Delivery         Delivery   `json:"delivery"`
}

// SteeringApplied names the model step that answers the input. It goes with the first event of that answer.
type SteeringApplied struct {
	SteeringID SteeringID `json:"steering_id"`
	PartID     PartID     `json:"part_id" doc:"The notice part that shows the input at its place in the message."`
	Index      int        `json:"index"`
	Text       string     `json:"text"`
	Step       int        `json:"step"`
}

// SteeringReturned gives an input back.
type SteeringReturned struct {
	SteeringID SteeringID  `json:"steering_id"`
	Reason     string      `json:"reason" enum:"withdrawn,cancelled,failed,limit"`
	FollowUpID *FollowUpID `json:"follow_up_id" doc:"Where the input is parked; null when it was withdrawn."`
}

// Notice tells the reader something that is part of the message.
type Notice struct {
	PartID PartID `json:"part_id"`
	Index  int    `json:"index"`
	Kind   string `json:"kind" doc:"As context_trimmed."`
	Text   string `json:"text"`
}

// TurnCancelRequested is the durable cancel. A second one has the wider scope.
type TurnCancelRequested struct {
	By           CancelledBy `json:"by" enum:"user,operator,deletion"`
	Scope        CancelScope `json:"scope" enum:"turn,turn_and_follow_ups" doc:"What becomes of the queue: held, or cancelled with the turn."`
	SeenSequence *int64      `json:"seen_sequence"`
}

// TurnRecoveringEvent announces a takeover.
type TurnRecoveringEvent struct {
	Attempt int    `json:"attempt"`
	Cause   string `json:"cause" enum:"restart,node_lost,actor_lost,drain"`
}

// TurnSnapshot replaces the events up to covers_sequence.
type TurnSnapshot struct {
	CoversSequence int64   `json:"covers_sequence"`
	Message        Message `json:"message"`
}

// TurnFinished is the last event.
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

// Envelope is what every event begins with.
type Envelope struct {
	ProtocolVersion int       `json:"protocol_version" enum:"1"`
	TurnID          TurnID    `json:"turn_id"`
	Sequence        int64     `json:"sequence" minimum:"1" doc:"Contiguous from 1 within the turn."`
	Type            EventType `json:"type"`
	At              time.Time `json:"at" format:"date-time"`
}

// TimeFormat is RFC 3339 in UTC with milliseconds, the one spelling of time on the wire.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// AppendEvent appends the one encoding of an event: a JSON object on one line. The bytes are made once, at commit, and
// those bytes go to the log, to other nodes and to every reader.
func AppendEvent(b []byte, turn TurnID, sequence int64, at time.Time, payload Payload) ([]byte, error) {
	b = append(b, `{"protocol_version":1,"turn_id":"`...)
	b = turn.AppendText(b)
	b = append(b, `","sequence":`...)
	b = strconv.AppendInt(b, sequence, 10)
	b = append(b, `,"type":"`...)
	b = append(b, payload.EventType()...)
	b = append(b, `","at":"`...)
	b = at.UTC().AppendFormat(b, TimeFormat)
	b = append(b, '"')
	if delta, ok := payload.(*AnswerDelta); ok { // nearly every event of a turn: by hand, without reflection
		b = append(b, `,"part_id":"`...)
		b = delta.PartID.AppendText(b)
		b = append(b, `","offset":`...)
		b = strconv.AppendInt(b, int64(delta.Offset), 10)
		b = append(b, `,"delta":`...)
		b = appendJSONString(b, delta.Delta)
		if delta.Obfuscation != "" {
			b = append(b, `,"obfuscation":`...)
			b = appendJSONString(b, delta.Obfuscation)
		}
		return append(b, '}'), nil
	}
	body, err := marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", payload.EventType(), err)
	}
	if len(body) > 2 { // not {}
		b = append(b, ',')
		b = append(b, body[1:len(body)-1]...)
	}
	return append(b, '}'), nil
}

// MarshalJSON spells the time of the message as every time on the wire is spelled; encoding/json alone would keep its zone
// and drop its zeros.
func (s *TurnSnapshot) MarshalJSON() ([]byte, error) {
	type message Message
	type timed struct {
		message
		CreatedAt string `json:"created_at"`
	}
	return marshal(struct {
		CoversSequence int64 `json:"covers_sequence"`
		Message        timed `json:"message"`
	}{s.CoversSequence, timed{message(s.Message), s.Message.CreatedAt.UTC().Format(TimeFormat)}})
}

// marshal is encoding/json without HTML escaping: event bytes are never placed inside HTML.
func marshal(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

const hexDigits = "0123456789abcdef"

// appendJSONString writes text as marshal does: control characters, quotes, backslashes, U+2028 and U+2029 are escaped,
// invalid UTF-8 becomes U+FFFD. A test holds both to the same bytes.
func appendJSONString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c < 0x7f && c != '"' && c != '\\' || c == 0x7f {
			i++
			continue
		}
		if c >= 0x80 {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError && r != '\u2028' && r != '\u2029' || r == utf8.RuneError && size > 1 {
				i += size
				continue
			}
			b = append(b, s[start:i]...)
			switch r {
			case '\u2028', '\u2029':
				b = append(b, `\u202`...)
				b = append(b, hexDigits[r&0xf])
			default:
				b = append(b, `\ufffd`...)
			}
			i += size
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, '\\', 'b')
		case '\f':
			b = append(b, '\\', 'f')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// DecodeEvent reads an event back. A payload type that this version does not know is returned as nil, not an error:
// readers ignore what they do not know.
func DecodeEvent(frame []byte) (Envelope, Payload, error) {
	var envelope Envelope
	if err := json.Unmarshal(frame, &envelope); err != nil {
		return envelope, nil, fmt.Errorf("decoding an event: %w", err)
	}
	payload := NewPayload(envelope.Type)
	if payload == nil {
		return envelope, nil, nil
	}
	if err := json.Unmarshal(frame, payload); err != nil {
		return envelope, nil, fmt.Errorf("decoding %s: %w", envelope.Type, err)
	}
	return envelope, payload, nil
}

var payloads = func() map[EventType]func() Payload {
	all := map[EventType]func() Payload{SnapshotSpec.Type: SnapshotSpec.New}
	for _, spec := range Events {
		all[spec.Type] = spec.New
	}
	return all
}()

// NewPayload makes an empty payload of a type; nil when the type is not known.
func NewPayload(t EventType) Payload {
	if create := payloads[t]; create != nil {
		return create()
	}
	return nil
}
