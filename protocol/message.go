package protocol

import (
	"encoding/json"
	"time"
)

// MessageStatus is where a message stands.
type MessageStatus string

// The states of a message.
const (
	MessageComplete   MessageStatus = "complete"
	MessageStreaming  MessageStatus = "streaming"
	MessageCancelled  MessageStatus = "cancelled"
	MessageFailed     MessageStatus = "failed"
	MessageIncomplete MessageStatus = "incomplete"
)

// Roles of a message.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
)

// Message is one entry of a conversation.
type Message struct {
	MessageID       MessageID      `json:"message_id"`
	ConversationID  ConversationID `json:"conversation_id"`
	BranchID        BranchID       `json:"branch_id"`
	ParentMessageID *MessageID     `json:"parent_message_id"`
	SiblingIndex    int            `json:"sibling_index" doc:"Position among the alternatives at this place, from 0."`
	SiblingCount    int            `json:"sibling_count"`
	PreviousSibling *Sibling       `json:"previous_sibling,omitempty" doc:"The alternative before this one; absent for the first."`
	NextSibling     *Sibling       `json:"next_sibling,omitempty" doc:"The alternative after this one; absent for the last."`
	Role            string         `json:"role" enum:"user,assistant"`
	Status          MessageStatus  `json:"status" enum:"complete,streaming,cancelled,failed,incomplete"`
	Parts           []Part         `json:"parts"`
	Attachments     []FileID       `json:"attachments"`
	TurnID          *TurnID        `json:"turn_id"`
	Profile         *Profile       `json:"profile"`
	ModelID         *string        `json:"model_id"`
	Usage           *Usage         `json:"usage"`
	Feedback        *Feedback      `json:"feedback"`
	CoversSequence  int64          `json:"covers_sequence,omitempty" doc:"Of a streaming message: the parts hold the events up to here; go on with ?after= it."`
	CreatedAt       time.Time      `json:"created_at"`
}

// Sibling is another version of a message. Making its branch the active one shows it.
type Sibling struct {
	MessageID MessageID `json:"message_id"`
	BranchID  BranchID  `json:"branch_id" doc:"A branch that shows it, the newest that has messages of its own where there are few: PUT …/active-branch with this one."`
}

// Feedback is what the account said about an answer.
type Feedback struct {
	Rating  string   `json:"rating" enum:"up,down"`
	Reasons []string `json:"reasons"`
	Comment string   `json:"comment"`
}

// PartType tags a part.
type PartType string

// The kinds of parts that are made. The type citation_list and the type artifact are published, and nothing makes them yet.
const (
	PartText      PartType = "text"
	PartReasoning PartType = "reasoning_summary"
	PartCode      PartType = "code"
	PartTool      PartType = "tool"
	PartNotice    PartType = "notice"
)

// Part is one piece of a message. Type says which fields count.
type Part struct {
	Type       PartType        `json:"type" enum:"text,reasoning_summary,code,tool,citation_list,artifact,notice"`
	PartID     PartID          `json:"part_id"`
	Text       string          `json:"text,omitempty" doc:"text, reasoning_summary, notice."`
	Citations  []Citation      `json:"citations,omitempty"`
	Language   string          `json:"language,omitempty" doc:"code."`
	Filename   string          `json:"filename,omitempty" doc:"code."`
	Code       string          `json:"code,omitempty" doc:"code."`
	Truncated  bool            `json:"truncated,omitempty" doc:"The part was cut before its end."`
	ToolID     *ToolID         `json:"tool_id,omitempty" doc:"tool."`
	ToolName   string          `json:"tool_name,omitempty"`
	Kind       string          `json:"kind,omitempty" doc:"tool: its kind. notice: steering, context_trimmed."`
	Title      string          `json:"title,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	State      ToolState       `json:"state,omitempty"`
	Output     string          `json:"output,omitempty"`
	Error      *ToolError      `json:"error,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"`
	SteeringID *SteeringID     `json:"steering_id,omitempty" doc:"notice of kind steering."`
	Open       bool            `json:"open,omitempty" doc:"More of this part is to come; never in a finished message."`
}
