package http

import (
	"context"
	stdhttp "net/http"
	"time"

	"turnstone/persistence"
	"turnstone/protocol"
)

// Bounds of usage.
const (
	usageDefaultSpan = 30 * 24 * time.Hour
	usageMaxSpan     = 366 * 24 * time.Hour
	clockSkew        = 5 * time.Minute // how far ahead a client's clock may be
)

func (s *Server) usageRoutes() []route {
	const one = "/conversations/{conversation_id}/usage"
	return []route{
		call("GET", one, "listUsage", "Lists what was used in a conversation, newest first.", reads, s.listUsage).
			about("Rows of the server (one for each turn) and of clients."),
		call("POST", one, "recordUsage", "Keeps what a client says it used; such records are shown and never counted.", creates, s.recordUsage).
			about("Rows of clients never count towards limits or sums.").
			sends(object{"kind": "characters", "quantity": 120, "unit": "character"}).
			answers(stdhttp.StatusCreated),
		call("GET", "/usage", "sumUsage", "Sums what the account's turns used.", reads, s.sumUsage).
			about("Sums the rows of the server from (included) to to (excluded), at most 366 days."),
	}
}

type listUsageInput struct {
	InConversation
	PageInput
}

func (s *Server) listUsage(ctx context.Context, in *listUsageInput) (*body[protocol.List[protocol.UsageRecord]], error) {
	scope := "usage " + in.ConversationID.String()
	after, err := openCursor[persistence.UsagePosition](ctx, s, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := s.DB.ListUsage(ctx, callerOf(ctx).AccountID, in.ConversationID, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return listed(ctx, s, scope, page, next), nil
}

type recordUsageInput struct {
	InConversation
	Body struct {
		Kind       string     `json:"kind" minLength:"1" maxLength:"64"`
		Quantity   float64    `json:"quantity" exclusiveMinimum:"0" maximum:"1000000000000000"`
		Unit       string     `json:"unit" minLength:"1" maxLength:"32"`
		OccurredAt *time.Time `json:"occurred_at,omitempty" nullable:"true" doc:"Default: now. Not in the future."`
	}
}

func (s *Server) recordUsage(ctx context.Context, in *recordUsageInput) (*created[protocol.UsageRecord], error) {
	if at := in.Body.OccurredAt; at != nil && at.After(s.now().Add(clockSkew)) {
		return nil, protocol.Invalid("body.occurred_at", "must not be in the future")
	}
	record, err := s.DB.RecordUsage(ctx, callerOf(ctx).AccountID, in.ConversationID, in.Body.Kind, in.Body.Quantity, in.Body.Unit, in.Body.OccurredAt)
	if err != nil {
		return nil, err
	}
	return &created[protocol.UsageRecord]{Location: conversationPath(in.ConversationID) + "/usage", Body: *record}, nil
}

type sumUsageInput struct {
	PageInput
	From    string `query:"from" maxLength:"40" doc:"A time (RFC 3339) or a day (UTC). Default: 30 days before to."`
	To      string `query:"to" maxLength:"40" doc:"Not included. A time (RFC 3339) or a day (UTC). Default: now."`
	GroupBy string `query:"group_by" enum:"day,profile,conversation" default:"day"`
}

// sumPosition is a place between two groups. It holds the span, whose default moves with the clock.
type sumPosition struct {
	From time.Time `json:"f"`
	To   time.Time `json:"t"`
	Key  string    `json:"k"`
}

func (s *Server) sumUsage(ctx context.Context, in *sumUsageInput) (*body[protocol.List[protocol.UsageGroup]], error) {
	scope := "usage by " + in.GroupBy + " " + in.From + " " + in.To
	at, err := openCursor[sumPosition](ctx, s, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	if at == nil {
		at = &sumPosition{}
		if at.From, at.To, err = in.span(s.now()); err != nil {
			return nil, err
		}
	}
	page, next, err := s.DB.SumUsage(ctx, callerOf(ctx).AccountID, &persistence.UsageQuery{
		From: at.From, To: at.To, Grouping: persistence.UsageGrouping(in.GroupBy), After: at.Key, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	if next == "" {
		return listed[protocol.UsageGroup, sumPosition](ctx, s, scope, page, nil), nil
	}
	return listed(ctx, s, scope, page, &sumPosition{From: at.From, To: at.To, Key: next}), nil
}

// span reads the time that is summed, at most a year.
func (in *sumUsageInput) span(now time.Time) (from, to time.Time, err error) {
	if to, err = timeOr("query.to", in.To, now); err != nil {
		return from, to, err
	}
	if from, err = timeOr("query.from", in.From, to.Add(-usageDefaultSpan)); err != nil {
		return from, to, err
	}
	if !from.Before(to) || to.Sub(from) > usageMaxSpan {
		return from, to, protocol.Invalid("query.from", "must be before to, by at most 366 days")
	}
	return from, to, nil
}

func timeOr(field, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, protocol.Invalid(field, "must be a time as 2026-01-31T08:00:00Z or a day as 2026-01-31")
}
