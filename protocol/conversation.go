package protocol

import "time"

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
	ExpiresAt      *time.Time        `json:"expires_at,omitempty" doc:"Of a temporary conversation: when it is erased, 24 h after its last activity."`
	Unread         bool              `json:"unread"`
	MessageCount   int               `json:"message_count"`
	Version        int64             `json:"version"`
	CreatedAt      time.Time         `json:"created_at"`
	UpdatedAt      time.Time         `json:"updated_at"`
	LastActivityAt time.Time         `json:"last_activity_at"`
}

// ConversationPage is a conversation with all that paints its page, in one call.
type ConversationPage struct {
	Conversation
	Draft            Draft      `json:"draft"`
	FollowUps        []FollowUp `json:"follow_ups" doc:"The items that wait, in their order."`
	MoreFollowUps    bool       `json:"more_follow_ups" doc:"The queue is longer than a page: GET …/follow-ups?state=open has all of it."`
	QueueVersion     int64      `json:"queue_version"`
	PendingApprovals []Approval `json:"pending_approvals"`
	LiveTurn         *LiveTurn  `json:"live_turn"`
}

// LiveTurn is what a page needs to attach to a running turn.
type LiveTurn struct {
	TurnID            TurnID    `json:"turn_id"`
	State             TurnState `json:"state"`
	LastSequence      int64     `json:"last_sequence"`
	AcceptingSteering bool      `json:"accepting_steering"`
	MessageID         MessageID `json:"message_id"`
}

// Draft is what the account has typed and not sent. The empty draft has version 0 until it was first written.
type Draft struct {
	Content     string     `json:"content"`
	Attachments []FileID   `json:"attachments"`
	Version     int64      `json:"version"`
	UpdatedAt   *time.Time `json:"updated_at"`
}

// Branch is one line of a conversation.
type Branch struct {
	BranchID      BranchID   `json:"branch_id"`
	Name          string     `json:"name"`
	BaseMessageID *MessageID `json:"base_message_id" doc:"The last message shared with the branch it came from."`
	HeadMessageID *MessageID `json:"head_message_id"`
	Active        bool       `json:"active"`
	CreatedAt     time.Time  `json:"created_at"`
}

// FollowUp is an item of a conversation's queue.
type FollowUp struct {
	FollowUpID  FollowUpID `json:"follow_up_id"`
	State       string     `json:"state" enum:"queued,held,started,cancelled"`
	Content     string     `json:"content"`
	Attachments []FileID   `json:"attachments"`
	Profile     *Profile   `json:"profile" enum:"auto,balanced,deep_reasoning,coding"`
	Position    int64      `json:"position"`
	Version     int64      `json:"version"`
	TurnID      *TurnID    `json:"turn_id"`
	CreatedAt   time.Time  `json:"created_at"`
}

// The states of a follow-up.
const (
	FollowUpQueued    = "queued"
	FollowUpHeld      = "held"
	FollowUpStarted   = "started"
	FollowUpCancelled = "cancelled"
)

// UsageRecord is one entry of what was used.
type UsageRecord struct {
	UsageID        UsageID         `json:"usage_id"`
	Source         string          `json:"source" enum:"server,client"`
	Kind           string          `json:"kind" doc:"turn, title (the call that wrote it), or what a client recorded."`
	Quantity       float64         `json:"quantity"`
	Unit           string          `json:"unit"`
	ConversationID *ConversationID `json:"conversation_id"`
	TurnID         *TurnID         `json:"turn_id"`
	Profile        *Profile        `json:"profile"`
	Usage          *Usage          `json:"usage" doc:"The tokens of a turn or title."`
	OccurredAt     time.Time       `json:"occurred_at"`
}

// UsageGroup is a sum of usage.
type UsageGroup struct {
	Key               string `json:"key" doc:"A date, a profile or a conversation, as group_by says."`
	Turns             int64  `json:"turns"`
	InputTokens       int64  `json:"input_tokens"`
	OutputTokens      int64  `json:"output_tokens"`
	ReasoningTokens   int64  `json:"reasoning_tokens"`
	CachedInputTokens int64  `json:"cached_input_tokens"`
}

// Confirmation is what a client repeats to do something that cannot be undone.
type Confirmation struct {
	Token      string         `json:"token"`
	ExpiresAt  time.Time      `json:"expires_at"`
	WillDelete map[string]int `json:"will_delete"`
}

// List is a page of anything.
type List[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
	HasMore    bool    `json:"has_more"`
}
