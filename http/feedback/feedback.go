// Package feedback handles the requests for feedback: the account's ratings of answers.
//
// It contains no SQL and no state.
package feedback

import (
	"context"
	"strings"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

// Store stores feedback; see package persistence/feedback.
type Store interface {
	Set(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, message *protocol.MessageID, feedback *protocol.Feedback) (rated *protocol.RatedResponse, err error)
}

// Handlers handle the requests for feedback.
type Handlers struct{ Store Store }

type putInput struct {
	resource.InConversation
	Body struct {
		MessageID *protocol.MessageID       `json:"message_id,omitempty" nullable:"true" doc:"The response that the user rates. Default: the latest eligible one."`
		Rating    protocol.Rating           `json:"rating" enum:"up,down"`
		Reasons   []protocol.FeedbackReason `json:"reasons,omitempty" enum:"accurate,complete,clear,followed_instructions,inaccurate,incomplete,unclear,ignored_instructions,outdated,unsafe,other" maxItems:"6" uniqueItems:"true" doc:"up may have accurate, complete, clear, followed_instructions and other; down may have inaccurate, incomplete, unclear, ignored_instructions, outdated, unsafe and other."`
		Comment   string                    `json:"comment,omitempty" maxLength:"2000"`
	}
}

func (h *Handlers) put(ctx context.Context, in *putInput) (*resource.Body[protocol.RatedResponse], error) {
	feedback := &protocol.Feedback{Rating: in.Body.Rating, Reasons: in.Body.Reasons, Comment: strings.TrimSpace(in.Body.Comment)}
	if feedback.Reasons == nil {
		feedback.Reasons = []protocol.FeedbackReason{}
	}
	if reason, unfit := feedback.Unfit(); unfit {
		return nil, protocol.Invalid("body.reasons", "contains "+string(reason)+", which is not a reason for the rating "+string(feedback.Rating))
	}
	stored, err := h.Store.Set(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.Body.MessageID, feedback)
	if err != nil {
		return nil, err
	}
	return resource.OK(*stored), nil
}

type deleteInput struct {
	resource.InConversation
	MessageID protocol.MessageID `query:"message_id" doc:"The response whose feedback is removed. Default: the latest eligible one."`
}

func (h *Handlers) delete(ctx context.Context, in *deleteInput) (*resource.Nothing, error) {
	var message *protocol.MessageID
	if !in.MessageID.IsZero() {
		message = &in.MessageID
	}
	_, err := h.Store.Set(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, message, nil)
	return nil, err
}
