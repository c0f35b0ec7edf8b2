package accounts

import (
	"context"

	"turnstone/http/auth"
	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/accounts"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

func (h *Handlers) getSession(ctx context.Context, _ *resource.Nothing) (*resource.Body[protocol.SessionInfo], error) {
	return resource.OK(h.Auth.SessionInfo(exchange.CallerOf(ctx))), nil
}

// signedOut is a response that clears the session cookie, the cache and the storage of the browser.
type signedOut struct {
	Cookie string `header:"Set-Cookie"`
	Clear  string `header:"Clear-Site-Data"`
}

func (h *Handlers) logout(ctx context.Context, _ *resource.Nothing) (*signedOut, error) {
	if err := failpoint.Respond(failpoint.SessionAfterRevoke, h.Auth.SignOut(ctx, exchange.AuthOf(ctx))); err != nil {
		return nil, err
	}
	return &signedOut{Cookie: h.Auth.ExpiredCookie(), Clear: `"cache","storage"`}, nil
}

type listSessionsInput struct{ resource.PageInput }

func (h *Handlers) listSessions(ctx context.Context, in *listSessionsInput) (*resource.Body[protocol.List[protocol.Device]], error) {
	caller, now := exchange.CallerOf(ctx), h.Now()
	return resource.List(caller, h.Keys, in.PageInput, "sessions", func(after *accounts.SessionPosition) ([]protocol.Device, *accounts.SessionPosition, error) {
		return h.Sessions.ListSessions(ctx, caller.AccountID, &accounts.SessionQuery{
			Current: caller.SessionID, Now: now, IdleSince: now.Add(-auth.SessionIdle), After: after, Limit: in.Limit,
		})
	})
}

type sessionPath struct {
	SessionID protocol.SessionID `path:"session_id"`
}

func (h *Handlers) endSession(ctx context.Context, in *sessionPath) (*resource.Nothing, error) {
	return nil, failpoint.Respond(failpoint.SessionAfterRevoke, h.Auth.EndSession(ctx, exchange.AuthOf(ctx), in.SessionID))
}

func (h *Handlers) endOtherSessions(ctx context.Context, _ *resource.Nothing) (*resource.Nothing, error) {
	return nil, h.Auth.EndOtherSessions(ctx, exchange.AuthOf(ctx))
}
