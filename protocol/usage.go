package protocol

import "time"

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

// Address returns the path of the record below the usage of its conversation. It has no version.
func (u *UsageRecord) Address() string { return u.UsageID.String() }

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
