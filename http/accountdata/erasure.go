package accountdata

import (
	"context"
	_ "embed"
	"time"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

//go:embed erasure.md
var erasureDescription string

// Erasures erases accounts.
type Erasures interface {
	Count(ctx context.Context, account protocol.AccountID) (map[string]int, error)
	Begin(ctx context.Context, account protocol.AccountID, now time.Time, session *protocol.SessionID, by audit.Requester) (protocol.ErasureID, error)
}

type eraseInput struct {
	Confirm string `header:"X-Confirm" doc:"The token of the preceding 409 confirmation_required."`
}

// erased is a response that also signs the browser out.
type erased struct {
	Cookie string `header:"Set-Cookie"`
	Clear  string `header:"Clear-Site-Data"`
	Body   protocol.Erasure
}

func (h *Handlers) eraseAccount(ctx context.Context, in *eraseInput) (*erased, error) {
	caller := exchange.CallerOf(ctx)
	counts, err := h.Erasures.Count(ctx, caller.AccountID)
	if err != nil {
		return nil, err
	}
	confirmations := resource.Confirmations{Keys: h.Keys, Now: h.Now}
	if err := confirmations.Confirm(caller, in.Confirm, caller.AccountID.String(), 0, counts, resource.Irreversible); err != nil {
		return nil, err
	}
	now := h.Now()
	id, err := h.Erasures.Begin(ctx, caller.AccountID, now, &caller.SessionID, exchange.Of(ctx).Requester())
	if err != nil {
		return nil, err
	}
	return &erased{
		Cookie: h.ExpiredCookie(), Clear: `"cache","storage"`,
		Body: protocol.Erasure{ErasureID: id, RequestedAt: now, WillDelete: counts},
	}, nil
}
