package protocol

import "time"

// MaxTitle is the maximum length of a title, in characters after trimming. A fork's name is a title too.
const MaxTitle = 200

// Conversation is one conversation of an account.
type Conversation struct {
	ConversationID ConversationID    `json:"conversation_id"`
	Title          string            `json:"title"`
	TitleSource    string            `json:"title_source" enum:"auto,user"`
	ProjectID      *ProjectID        `json:"project_id"`
	PinnedAt       *time.Time        `json:"pinned_at"`
	ArchivedAt     *time.Time        `json:"archived_at"`
	ActiveBranchID BranchID          `json:"active_branch_id"`
	HeadMessageID  *MessageID        `json:"head_message_id"`
	LiveTurnID     *TurnID           `json:"live_turn_id"`
	Profile        *Profile          `json:"profile" enum:"auto,balanced,deep_reasoning,coding"`
	Metadata       map[string]string `json:"metadata"`
	Temporary      bool              `json:"temporary"`
	ExpiresAt      *time.Time        `json:"expires_at,omitempty" doc:"Only for a temporary conversation: the time at which it is erased, 24 h after its last activity."`
	Unread         bool              `json:"unread"`
	MessageCount   int               `json:"message_count"`
	HasDraft       bool              `json:"has_draft" doc:"Whether the draft has a text or files."`
	Version        int64             `json:"version"`
	CreatedAt      time.Time         `json:"created_at"`
	UpdatedAt      time.Time         `json:"updated_at"`
	LastActivityAt time.Time         `json:"last_activity_at"`
}

// ConversationPage is a conversation with everything that a client needs to render its page, in one response.
type ConversationPage struct {
	Conversation
	Draft            Draft      `json:"draft"`
	FollowUps        []FollowUp `json:"follow_ups" doc:"The waiting items, in queue order."`
	MoreFollowUps    bool       `json:"more_follow_ups" doc:"True when the queue has more items than this list; GET …/follow-ups?state=open returns all of them."`
	QueueVersion     int64      `json:"queue_version"`
	PendingApprovals []Approval `json:"pending_approvals"`
	LiveTurn         *LiveTurn  `json:"live_turn"`
}

// LiveTurn is what a client needs to follow the live turn of a conversation.
type LiveTurn struct {
	TurnID            TurnID    `json:"turn_id"`
	State             TurnState `json:"state"`
	LastSequence      int64     `json:"last_sequence"`
	AcceptingSteering bool      `json:"accepting_steering"`
	MessageID         MessageID `json:"message_id"`
}

// Draft is what the account has typed but not sent. A draft that was never written is empty and has version 0.
type Draft struct {
	Content     string     `json:"content"`
	Attachments []FileID   `json:"attachments"`
	Version     int64      `json:"version"`
	UpdatedAt   *time.Time `json:"updated_at"`
}

// Branch is one path of messages through a conversation. The branches of a conversation form a tree: each starts after a
// message of its parent.
type Branch struct {
	BranchID       BranchID   `json:"branch_id"`
	Name           string     `json:"name"`
	Preview        string     `json:"preview" doc:"The beginning of the text of the branch's first message of its own: the first one that is not on the branch that it was created from. Empty if there is none, or if it has no text yet."`
	ParentBranchID *BranchID  `json:"parent_branch_id" doc:"The branch on which base_message_id was written; null if the branch starts with a first message of its own."`
	BaseMessageID  *MessageID `json:"base_message_id" doc:"The last message that this branch shares with the branch it was created from."`
	BaseDepth      int        `json:"base_depth" doc:"The number of messages up to and including base_message_id; 0 if there is none."`
	HeadMessageID  *MessageID `json:"head_message_id"`
	HeadDepth      int        `json:"head_depth" doc:"The number of messages up to and including head_message_id; 0 if the branch is empty."`
	Active         bool       `json:"active"`
	Version        int64      `json:"version" doc:"Every change of the name raises it."`
	CreatedAt      time.Time  `json:"created_at"`
}

// Address returns the path of a branch below the branches of its conversation, and the version of its ETag.
func (b *Branch) Address() (path string, version int64) { return b.BranchID.String(), b.Version }

// FollowUp is an item of a conversation's follow-up queue.
type FollowUp struct {
	FollowUpID  FollowUpID    `json:"follow_up_id"`
	State       FollowUpState `json:"state" enum:"queued,held,started,cancelled"`
	Content     string        `json:"content"`
	Attachments []FileID      `json:"attachments"`
	Profile     *Profile      `json:"profile" enum:"auto,balanced,deep_reasoning,coding"`
	Tools       *ToolChoice   `json:"tools" doc:"The tools that its turn may use; null: all."`
	Position    int64         `json:"position"`
	Version     int64         `json:"version"`
	TurnID      *TurnID       `json:"turn_id"`
	CreatedAt   time.Time     `json:"created_at"`
}

// Address returns the path of a follow-up below the queue of its conversation, and the version of its ETag.
func (f *FollowUp) Address() (path string, version int64) { return f.FollowUpID.String(), f.Version }

// FollowUpList is one page of a queue.
type FollowUpList struct {
	List[FollowUp]
	QueueVersion int64 `json:"queue_version" doc:"The version of the queue, which every change of one of its items or of their order raises. PUT …/follow-ups/order needs it."`
}

// FollowUpOrder is the order of the waiting items of a queue.
type FollowUpOrder struct {
	Order        []FollowUpID `json:"order" doc:"The queued and held items, the next one first; the first 501 of a longer queue."`
	QueueVersion int64        `json:"queue_version"`
}

// UsageRecord is one recorded use of the service.
type UsageRecord struct {
	UsageID        UsageID         `json:"usage_id"`
	Source         string          `json:"source" enum:"server,client"`
	Kind           string          `json:"kind" doc:"turn, title (the model call that wrote a title), or a kind that a client recorded."`
	Quantity       float64         `json:"quantity"`
	Unit           string          `json:"unit"`
	ConversationID *ConversationID `json:"conversation_id"`
	TurnID         *TurnID         `json:"turn_id"`
	Profile        *Profile        `json:"profile"`
	Usage          *Usage          `json:"usage" doc:"The tokens that a turn or a title used."`
	OccurredAt     time.Time       `json:"occurred_at"`
}

// Address returns the path of a record below the usage of its conversation. It has no version.
func (u *UsageRecord) Address() (path string, version int64) { return u.UsageID.String(), 0 }

// UsageGroup is the usage of an account, summed over one group.
type UsageGroup struct {
	Key               string `json:"key" doc:"A date, a profile or a conversation, depending on group_by."`
	Turns             int64  `json:"turns"`
	InputTokens       int64  `json:"input_tokens"`
	OutputTokens      int64  `json:"output_tokens"`
	ReasoningTokens   int64  `json:"reasoning_tokens"`
	CachedInputTokens int64  `json:"cached_input_tokens"`
}

// TokenBudget is the state of an account's budget of model tokens for the current UTC day.
type TokenBudget struct {
	Limit    int64     `json:"limit" doc:"The tokens that the account may use in a day, input and output together."`
	Used     int64     `json:"used" doc:"The tokens of the model calls that have ended."`
	Reserved int64     `json:"reserved" doc:"The tokens that model calls under way may still use."`
	ResetsAt time.Time `json:"resets_at" doc:"When the budget is full again."`
}

// Confirmation is a token that a client sends back to confirm a deletion.
type Confirmation struct {
	Token      string         `json:"token"`
	ExpiresAt  time.Time      `json:"expires_at"`
	WillDelete map[string]int `json:"will_delete" doc:"The numbers of what goes, by kind."`
}

// List is one page of a paginated list.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
	HasMore    bool    `json:"has_more"`
}

// Address returns the path of a conversation and the version of its ETag.
func (c *Conversation) Address() (path string, version int64) {
	return "/conversations/" + c.ConversationID.String(), c.Version
}
