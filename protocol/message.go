package protocol

import (
	"encoding/json"
	"strings"
	"time"
)

// MessageStatus is the state of a message.
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
	MessageID       MessageID       `json:"message_id"`
	ConversationID  ConversationID  `json:"conversation_id"`
	BranchID        BranchID        `json:"branch_id"`
	ParentMessageID *MessageID      `json:"parent_message_id"`
	SiblingIndex    int             `json:"sibling_index" doc:"Position among the alternative versions of this message, from 0."`
	SiblingCount    int             `json:"sibling_count"`
	PreviousSibling *Sibling        `json:"previous_sibling,omitempty" doc:"The alternative before this one; absent for the first."`
	NextSibling     *Sibling        `json:"next_sibling,omitempty" doc:"The alternative after this one; absent for the last."`
	Role            string          `json:"role" enum:"user,assistant"`
	Status          MessageStatus   `json:"status" enum:"complete,streaming,cancelled,failed,incomplete"`
	Parts           []Part          `json:"parts"`
	Attachments     []FileID        `json:"attachments"`
	TurnID          *TurnID         `json:"turn_id"`
	Profile         *Profile        `json:"profile"`
	ModelID         *string         `json:"model_id"`
	Routing         *MessageRouting `json:"routing" doc:"How auto chose the profile of an answer; null if the user chose it."`
	Usage           *Usage          `json:"usage"`
	Feedback        *Feedback       `json:"feedback"`
	CoversSequence  int64           `json:"covers_sequence,omitempty" doc:"Only for a streaming message: the parts include the events up to this sequence; read on with ?after= this value."`
	CreatedAt       time.Time       `json:"created_at"`
}

// MessageRouting is the choice of a profile by auto.
type MessageRouting struct {
	Requested Profile `json:"requested" enum:"auto,balanced,deep_reasoning,coding"`
	Resolved  Profile `json:"resolved" enum:"auto,balanced,deep_reasoning,coding"`
	Reason    string  `json:"reason" doc:"A sentence in English."`
}

// Sibling is another version of a message. Activating its branch shows it.
type Sibling struct {
	MessageID MessageID `json:"message_id"`
	BranchID  BranchID  `json:"branch_id" doc:"A branch that shows this version: where there are few branches, the newest one that has messages of its own. PUT …/active-branch with this identifier activates it."`
}

// PartType is the kind of a part.
type PartType string

// The kinds of parts that the service creates. The kind citation_list is published, but not created yet.
const (
	PartText      PartType = "text"
	PartReasoning PartType = "reasoning_summary"
	PartCode      PartType = "code"
	PartTool      PartType = "tool"
	PartArtifact  PartType = "artifact"
	PartNotice    PartType = "notice"
)

// NoticeAttachmentAbsent is the kind of a notice in place of an attachment that an imported conversation names. Its text
// is the name of the file.
const NoticeAttachmentAbsent = "attachment_absent"

// Part is one piece of a message. Type determines which fields are used.
type Part struct {
	Type       PartType        `json:"type" enum:"text,reasoning_summary,code,tool,citation_list,artifact,notice"`
	PartID     PartID          `json:"part_id"`
	Text       string          `json:"text,omitempty" doc:"For text, reasoning_summary and notice."`
	Citations  []Citation      `json:"citations,omitempty"`
	Language   string          `json:"language,omitempty" doc:"For code, and for an artifact of code."`
	Filename   string          `json:"filename,omitempty" doc:"For code."`
	Code       string          `json:"code,omitempty" doc:"For code."`
	Truncated  bool            `json:"truncated,omitempty" doc:"The part was cut off before its end."`
	ToolID     *ToolID         `json:"tool_id,omitempty" doc:"For tool."`
	ToolName   string          `json:"tool_name,omitempty"`
	Kind       string          `json:"kind,omitempty" doc:"For tool: the kind of the tool. For artifact: its kind. For notice: steering, context_trimmed, or attachment_absent (a file that an imported conversation names but does not have)."`
	Title      string          `json:"title,omitempty"`
	Input      json.RawMessage `json:"input,omitempty"`
	State      ToolState       `json:"state,omitempty"`
	Output     string          `json:"output,omitempty"`
	Sources    []Source        `json:"sources,omitempty" doc:"For tool: the files that the output shows."`
	Error      *ToolError      `json:"error,omitempty"`
	DurationMS int64           `json:"duration_ms,omitempty"`
	Outcome    ToolOutcome     `json:"outcome,omitempty" enum:"ok,empty,failed,denied,unknown" doc:"For tool: what the result is."`
	Repeated   bool            `json:"repeated,omitempty" doc:"For tool: the call did not run; this is the result of an identical earlier one."`
	Approval   *PartApproval   `json:"approval,omitempty" doc:"For tool: the approval that the call needed."`
	SteeringID *SteeringID     `json:"steering_id,omitempty" doc:"For a notice of kind steering."`
	ArtifactID *ArtifactID     `json:"artifact_id,omitempty" doc:"For artifact."`
	Version    int64           `json:"version,omitempty" doc:"For artifact: the newest version that the answer wrote."`
	CreatedBy  ArtifactAuthor  `json:"created_by,omitempty" enum:"model,user" doc:"For artifact: who wrote that version."`
	Open       bool            `json:"open,omitempty" doc:"The part is still being written; never set in a finished message."`
}

// FoundMessage is a message in which a text may occur, with what of it is searched.
type FoundMessage struct {
	MessageID MessageID   `json:"message_id"`
	Role      string      `json:"role" enum:"user,assistant"`
	Position  int         `json:"position" doc:"The number of the message on the branch, from 1."`
	Parts     []FoundPart `json:"parts"`
}

// FoundPart is a part of a message that is searched.
type FoundPart struct {
	Type     PartType `json:"type" enum:"text,code"`
	Text     string   `json:"text,omitempty" doc:"For text."`
	Language string   `json:"language,omitempty" doc:"For code."`
	Code     string   `json:"code,omitempty" doc:"For code."`
}

// PartApproval is the approval of a tool call, as its part of the message shows it.
type PartApproval struct {
	ApprovalRequest
	Decision Decision  `json:"decision,omitempty" enum:"approve_once,approve_for_conversation,approve_with_edits,reject,expired,cancelled" doc:"Absent while the approval is pending."`
	By       DecidedBy `json:"by,omitempty" enum:"user,policy,timeout"`
	Reason   string    `json:"reason,omitempty" doc:"The reason that the user gave for a rejection."`
}

// FenceRun returns the number of equal backticks or tildes at the start of a line. Three or more are a fence in Markdown.
func FenceRun(line string) int {
	if line == "" || line[0] != '`' && line[0] != '~' {
		return 0
	}
	return len(line) - len(strings.TrimLeft(line, line[:1]))
}

// CodeFence returns the backticks that enclose code in Markdown: at least three, and more than the code has in a row.
func CodeFence(code string) string {
	longest, row := 2, 0
	for i := range len(code) {
		if row++; code[i] != '`' {
			row = 0
		}
		longest = max(longest, row)
	}
	return strings.Repeat("`", longest+1)
}
