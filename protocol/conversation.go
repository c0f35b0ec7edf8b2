package protocol

import "time"

// MaxTitle is the maximum length of a title, in characters after trimming. A fork's name is a title too.
const MaxTitle = 200

// MaxProvisionalTitle limits a title that is made from a message, in characters: about one line of a sidebar.
const MaxProvisionalTitle = 60

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

// Address returns the path of the conversation.
func (c *Conversation) Address() string { return ConversationPath(c.ConversationID) }

// CurrentVersion returns the version of the conversation.
func (c *Conversation) CurrentVersion() int64 { return c.Version }

// ConversationPath returns the path of a conversation.
func ConversationPath(id ConversationID) string { return "/conversations/" + id.String() }

// CheckTemporary returns why a request cannot make a conversation temporary: a new one would be in a project, which lists it,
// or an existing one is not temporary. existing is whether it is, nil for a new conversation.
func CheckTemporary(requested bool, project *ProjectID, existing *bool) error {
	switch {
	case !requested:
		return nil
	case existing != nil && !*existing:
		return Invalid("body.temporary", "must be false, because the conversation is not temporary")
	case existing == nil && project != nil:
		return Invalid("body.temporary", "must be false for a conversation in a project")
	}
	return nil
}
