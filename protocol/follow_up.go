package protocol

import "time"

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

// Address returns the path of the follow-up below the queue of its conversation.
func (f *FollowUp) Address() string { return f.FollowUpID.String() }

// CurrentVersion returns the version of the follow-up.
func (f *FollowUp) CurrentVersion() int64 { return f.Version }

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

// FollowUpsPath returns the path of the queue of a conversation.
func FollowUpsPath(id ConversationID) string { return ConversationPath(id) + "/follow-ups" }
