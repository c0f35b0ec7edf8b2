package protocol

import "slices"

// Rating is the account's judgement of an answer.
type Rating string

// The ratings.
const (
	RatingUp   Rating = "up"
	RatingDown Rating = "down"
)

// Limits of feedback.
const (
	MaxFeedbackReasons = 6
	MaxFeedbackComment = 2000 // characters
)

// FeedbackReason is a reason for a rating.
type FeedbackReason string

// The reasons for a rating. ReasonOther fits either rating.
const (
	ReasonAccurate             FeedbackReason = "accurate"
	ReasonComplete             FeedbackReason = "complete"
	ReasonClear                FeedbackReason = "clear"
	ReasonFollowedInstructions FeedbackReason = "followed_instructions"

	ReasonInaccurate          FeedbackReason = "inaccurate"
	ReasonIncomplete          FeedbackReason = "incomplete"
	ReasonUnclear             FeedbackReason = "unclear"
	ReasonIgnoredInstructions FeedbackReason = "ignored_instructions"
	ReasonOutdated            FeedbackReason = "outdated"
	ReasonUnsafe              FeedbackReason = "unsafe"

	ReasonOther FeedbackReason = "other"
)

// ReasonsFor lists the reasons that each rating may have.
var ReasonsFor = map[Rating][]FeedbackReason{
	RatingUp: {ReasonAccurate, ReasonComplete, ReasonClear, ReasonFollowedInstructions, ReasonOther},
	RatingDown: {
		ReasonInaccurate, ReasonIncomplete, ReasonUnclear, ReasonIgnoredInstructions, ReasonOutdated, ReasonUnsafe, ReasonOther,
	},
}

// Feedback is the account's rating of an answer.
type Feedback struct {
	Rating  Rating           `json:"rating" enum:"up,down"`
	Reasons []FeedbackReason `json:"reasons" enum:"accurate,complete,clear,followed_instructions,inaccurate,incomplete,unclear,ignored_instructions,outdated,unsafe,other"`
	Comment string           `json:"comment"`
}

// Unfit returns the first reason that the rating may not have; ok is false if there is none.
func (f *Feedback) Unfit() (reason FeedbackReason, ok bool) {
	for _, reason := range f.Reasons {
		if !slices.Contains(ReasonsFor[f.Rating], reason) {
			return reason, true
		}
	}
	return "", false
}

// RatedResponse is the response of a conversation that feedback applies to, with its feedback.
type RatedResponse struct {
	MessageID *MessageID `json:"message_id" doc:"The latest eligible response of the active branch; null if it has none."`
	Feedback  *Feedback  `json:"feedback" doc:"Its feedback; null if there is none."`
}
