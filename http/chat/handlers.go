package chat

import (
	"context"
	stdhttp "net/http"
	"time"

	"turnstone/actors/toolbox"
	"turnstone/actors/turn"
	"turnstone/actors/turn/machine"
	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/response"
	"turnstone/persistence/followups"
	"turnstone/persistence/followups/queues"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Turns starts, commands and follows live turns; see package actors/turn. The node implements it: it runs a turn itself or
// finds its owner.
type Turns interface {
	StartTurn(ctx context.Context, start *turnlog.Start) (*turnlog.StartResult, error)
	CreateFollowUp(ctx context.Context, f *turnlog.NewFollowUp) (*protocol.FollowUp, error)
	ChangeFollowUp(ctx context.Context, change *turnlog.FollowUpChange) (*protocol.FollowUp, error)
	PromoteFollowUp(ctx context.Context, promotion *turnlog.FollowUpPromotion) (*protocol.FollowUp, error)
	Command(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, c *machine.Command) (protocol.SteeringReceipt, error)
	CancelTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID, by protocol.CancelledBy, scope protocol.CancelScope) error
	Follow(account protocol.AccountID, turn protocol.TurnID, after int64) *turn.Reader
}

var _ Turns = (*turn.Host)(nil)

// Store reads turns; see package persistence/turns.
type Store interface {
	GetTurn(ctx context.Context, account protocol.AccountID, turn protocol.TurnID) (*protocol.Turn, error)
	ListTurns(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, after *protocol.TurnID, limit int) (page []protocol.Turn, next *protocol.TurnID, err error)
	// StoredStart returns the result of an earlier POST /chat with this key; nil if there was none. For the same key with
	// another body, the error is protocol.CodeIdempotencyMismatch.
	StoredStart(ctx context.Context, account protocol.AccountID, key protocol.IdempotencyKey) (*turnlog.StoredStart, error)
}

// Messages reads messages, and who has an item of a queue; see package persistence/conversations.
type Messages interface {
	GetMessage(ctx context.Context, account protocol.AccountID, message protocol.MessageID) (*protocol.Message, error)
	OwnsFollowUp(ctx context.Context, account protocol.AccountID, id protocol.FollowUpID) error
}

// Approvals reads approvals; see package persistence/approvals.
type Approvals interface {
	Get(ctx context.Context, account protocol.AccountID, id protocol.ApprovalID) (*protocol.Approval, error)
}

// FollowUps reads and orders the queues of conversations. Turns makes the changes that can start a turn.
type FollowUps interface {
	ListFollowUps(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, all bool, after *queues.Position, limit int) (page *followups.Page, err error)
	GetFollowUp(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, followUp protocol.FollowUpID) (*protocol.FollowUp, error)
	OrderFollowUps(ctx context.Context, account protocol.AccountID, conversation protocol.ConversationID, order []protocol.FollowUpID, version *int64) (queue *protocol.FollowUpOrder, err error)
}

// Handlers handle the requests that start, follow, command and list turns, and those for the queues of conversations.
type Handlers struct {
	Turns     Turns
	Store     Store
	Messages  Messages
	FollowUps FollowUps
	Approvals Approvals
	Tools     *toolbox.Catalogue
	Streams   *exchange.Streams
	Limits    *exchange.Limits
	Keys      *auth.Keys
	Now       func() time.Time
}

// respondAccepted responds to a start that became an item of the queue, or an input for the live turn. A repeated request gets the 202
// of the first one.
func (h *Handlers) respondAccepted(w stdhttp.ResponseWriter, replayed bool, item *protocol.FollowUp, receipt *protocol.SteeringReceipt) error {
	if replayed {
		w.Header().Set(exchange.ReplayedHeader, "true")
	}
	if receipt != nil {
		return response.SendJSON(w, stdhttp.StatusAccepted, receipt)
	}
	return response.SendJSON(w, stdhttp.StatusAccepted, item)
}
