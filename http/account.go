package http

import (
	"context"

	"turnstone/http/resource"
	"turnstone/http/router"
	"turnstone/protocol"
)

// accountLimits reads the limits of accounts.
type accountLimits struct {
	quotas       Quotas
	turns        TurnStore
	budget       Budget // nil: no limit
	maxLiveTurns int
}

func (l *accountLimits) of(ctx context.Context, account protocol.AccountID) (limits protocol.AccountLimits, err error) {
	live, err := l.turns.CountLive(ctx, account)
	if err != nil {
		return limits, err
	}
	limits.LiveTurns = protocol.NewQuota(int64(l.maxLiveTurns), live)
	if limits.Files, limits.FileBytes, err = l.quotas.Quotas(ctx, account); err != nil {
		return limits, err
	}
	if l.budget != nil {
		limits.Tokens, err = l.budget.State(ctx, account)
	}
	return limits, err
}

func (h *accountHandlers) getAccount(ctx context.Context, _ *resource.Nothing) (*resource.Body[protocol.AccountState], error) {
	account := router.CallerOf(ctx).Account
	limits, err := h.limits.of(ctx, account.AccountID)
	if err != nil {
		return nil, err
	}
	return resource.OK(protocol.AccountState{Account: account, Limits: limits}), nil
}

type emailInput struct {
	resource.IfMatch
	Body struct {
		Email   string `json:"email" maxLength:"254" format:"email"`
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *accountHandlers) changeEmail(ctx context.Context, in *emailInput) (*resource.Versioned[*protocol.Account], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	account, err := h.auth.ChangeEmail(ctx, router.AuthOf(ctx), in.Body.Email, version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(account, account.Version), nil
}

type nameInput struct {
	resource.IfMatch
	Body struct {
		DisplayName string `json:"display_name" maxLength:"200" doc:"1 to 100 characters."`
		Version     *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *accountHandlers) changeName(ctx context.Context, in *nameInput) (*resource.Versioned[*protocol.Account], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	account, err := h.auth.ChangeName(ctx, router.AuthOf(ctx), in.Body.DisplayName, version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(account, account.Version), nil
}
