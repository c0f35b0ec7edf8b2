// Package usage handles the requests for usage records: those of conversations, and their sums for an account.
//
// It contains no SQL and no state.
package usage

import (
	"context"
	"time"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/usage"
	"turnstone/protocol"
)

// Store stores usage records; see package persistence/usage.
type Store interface {
	RecordUsage(
		ctx context.Context, account protocol.AccountID, id protocol.ConversationID, kind string, quantity float64, unit string, occurredAt *time.Time,
	) (record *protocol.UsageRecord, err error)
	ListUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, after *usage.Position, limit int) (page []protocol.UsageRecord, next *usage.Position, err error)
	GetUsage(ctx context.Context, account protocol.AccountID, id protocol.ConversationID, record protocol.UsageID) (*protocol.UsageRecord, error)
	SumUsage(ctx context.Context, account protocol.AccountID, query *usage.Query) (page []protocol.UsageGroup, next string, err error)
}

// Budget reports how many model tokens accounts have used today.
type Budget interface {
	State(ctx context.Context, account protocol.AccountID) (*protocol.TokenBudget, error)
}

// Handlers handle the requests for usage records.
type Handlers struct {
	Store  Store
	Budget Budget // nil: no limit
	Keys   *auth.Keys
	Now    func() time.Time
}

// Bounds of the times in usage requests.
const (
	usageDefaultSpan = 30 * 24 * time.Hour
	usageMaxSpan     = 366 * 24 * time.Hour
	clockSkew        = 5 * time.Minute // how far a client's clock may be ahead
)

type listUsageInput struct {
	resource.InConversation
	resource.PageInput
}

func (h *Handlers) listUsage(ctx context.Context, in *listUsageInput) (*resource.Body[protocol.List[protocol.UsageRecord]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "usage "+in.ConversationID.String(), func(after *usage.Position) ([]protocol.UsageRecord, *usage.Position, error) {
		return h.Store.ListUsage(ctx, caller.AccountID, in.ConversationID, after, in.Limit)
	})
}

type usagePath struct {
	resource.InConversation
	UsageID protocol.UsageID `path:"usage_id"`
}

func (h *Handlers) getUsage(ctx context.Context, in *usagePath) (*resource.Body[*protocol.UsageRecord], error) {
	record, err := h.Store.GetUsage(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.UsageID)
	if err != nil {
		return nil, err
	}
	return resource.OK(record), nil
}

type recordUsageInput struct {
	resource.InConversation
	Body struct {
		Kind       string     `json:"kind" minLength:"1" maxLength:"64"`
		Quantity   float64    `json:"quantity" exclusiveMinimum:"0" maximum:"1000000000000000"`
		Unit       string     `json:"unit" minLength:"1" maxLength:"32"`
		OccurredAt *time.Time `json:"occurred_at,omitempty" nullable:"true" doc:"When the usage occurred. Must not be in the future. Default: now."`
	}
}

func (h *Handlers) recordUsage(ctx context.Context, in *recordUsageInput) (*resource.CreatedOnce[protocol.UsageRecord], error) {
	if at := in.Body.OccurredAt; at != nil && at.After(h.Now().Add(clockSkew)) {
		return nil, protocol.Invalid("body.occurred_at", "must not be in the future")
	}
	record, err := h.Store.RecordUsage(ctx, exchange.CallerOf(ctx).AccountID, in.ConversationID, in.Body.Kind, in.Body.Quantity, in.Body.Unit, in.Body.OccurredAt)
	if err != nil {
		return nil, err
	}
	return resource.NewCreatedOnce(protocol.ConversationPath(in.ConversationID)+"/usage", record), nil
}

type sumUsageInput struct {
	resource.PageInput
	From    string `query:"from" maxLength:"40" doc:"The first day of the period (UTC), or a time of that day (RFC 3339). Default: 30 days before to."`
	To      string `query:"to" maxLength:"40" doc:"The day after the last day of the period (UTC), or a time (RFC 3339) of its last day. Default: now."`
	GroupBy string `query:"group_by" enum:"day,profile,conversation" default:"day"`
}

// sumPosition is a position between two groups. It contains the period, because the default period changes with time.
type sumPosition struct {
	From time.Time `json:"f"`
	To   time.Time `json:"t"`
	Key  string    `json:"k"`
}

// usageSums is a page of sums with the state of the budget.
type usageSums struct {
	protocol.List[protocol.UsageGroup]
	Budget *protocol.TokenBudget `json:"budget" doc:"Null if the service limits no tokens."`
}

func (h *Handlers) sumUsage(ctx context.Context, in *sumUsageInput) (*resource.Body[usageSums], error) {
	scope := "usage by " + in.GroupBy + " " + in.From + " " + in.To
	at, err := resource.OpenCursor[sumPosition](exchange.CallerOf(ctx), h.Keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	if at == nil {
		at = &sumPosition{}
		if at.From, at.To, err = in.span(h.Now()); err != nil {
			return nil, err
		}
	}
	page, next, err := h.Store.SumUsage(ctx, exchange.CallerOf(ctx).AccountID, &usage.Query{
		From: at.From, To: at.To, Grouping: usage.Grouping(in.GroupBy), After: at.Key, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	var following *sumPosition
	if next != "" {
		following = &sumPosition{From: at.From, To: at.To, Key: next}
	}
	sums := usageSums{List: resource.Listed(exchange.CallerOf(ctx), h.Keys, scope, page, following).Body}
	if h.Budget != nil {
		if sums.Budget, err = h.Budget.State(ctx, exchange.CallerOf(ctx).AccountID); err != nil {
			return nil, err
		}
	}
	return resource.OK(sums), nil
}

// span returns the period that is summed: whole days, at most usageMaxSpan. A time stands for its day.
func (in *sumUsageInput) span(now time.Time) (from, to time.Time, err error) {
	if to, err = resource.TimeOr("query.to", in.To, now); err != nil {
		return from, to, err
	}
	if from, err = resource.TimeOr("query.from", in.From, to.Add(-usageDefaultSpan)); err != nil {
		return from, to, err
	}
	const day = 24 * time.Hour
	from, to = from.UTC().Truncate(day), to.UTC().Add(day-time.Nanosecond).Truncate(day)
	if !from.Before(to) || to.Sub(from) > usageMaxSpan {
		return from, to, protocol.Invalid("query.from", "must be earlier than to, by at most 366 days")
	}
	return from, to, nil
}
