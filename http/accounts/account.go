package accounts

import (
	"context"
	_ "embed"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

//go:embed change_email.md
var changeEmailDescription string

// accountState is the signed-in account with its limits.
type accountState struct {
	protocol.Account
	Limits limitStates `json:"limits"`
}

// limitStates are the limits of what an account stores and runs, and how much of them is used.
type limitStates struct {
	LiveTurns quota                 `json:"live_turns" doc:"The turns that may be live at the same time."`
	Files     quota                 `json:"files" doc:"The number of files, open uploads included."`
	FileBytes quota                 `json:"file_bytes" doc:"The sizes of the files, of open uploads, and of rejected uploads that are not erased yet, in bytes."`
	Tokens    *protocol.TokenBudget `json:"tokens" doc:"The model tokens of the day. Null if the service limits no tokens."`
}

// quota is a limit and its state.
type quota struct {
	Limit int64 `json:"limit"`
	Used  int64 `json:"used"`
	Left  int64 `json:"left" doc:"0 if used exceeds limit."`
}

// newQuota returns the state of a limit.
func newQuota(limit, used int64) quota {
	return quota{Limit: limit, Used: used, Left: max(0, limit-used)}
}

// limits reads the limits of an account.
func (h *Handlers) limits(ctx context.Context, account protocol.AccountID) (limits limitStates, err error) {
	live, err := h.Turns.CountLive(ctx, account)
	if err != nil {
		return limits, err
	}
	limits.LiveTurns = newQuota(int64(h.MaxLiveTurns), live)
	used, limit, err := h.Files.Stored(ctx, account)
	if err != nil {
		return limits, err
	}
	limits.Files, limits.FileBytes = newQuota(limit.Files, used.Files), newQuota(limit.Bytes, used.Bytes)
	if h.Budget != nil {
		limits.Tokens, err = h.Budget.State(ctx, account)
	}
	return limits, err
}

func (h *Handlers) getAccount(ctx context.Context, _ *resource.Nothing) (*resource.Versioned[accountState], error) {
	account := exchange.CallerOf(ctx).Account
	limits, err := h.limits(ctx, account.AccountID)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(&accountState{Account: account, Limits: limits}, nil)
}

type securityLogInput struct{ resource.PageInput }

func (h *Handlers) listSecurityLog(ctx context.Context, in *securityLogInput) (*resource.Body[protocol.List[protocol.SecurityLogEntry]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "security log", func(after *audit.Position) ([]protocol.SecurityLogEntry, *audit.Position, error) {
		return h.SecurityLog.ListEntries(ctx, caller.AccountID, after, in.Limit)
	})
}

type emailInput struct {
	resource.IfMatch
	Body struct {
		Email   string `json:"email" maxLength:"254" format:"email"`
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *Handlers) changeEmail(ctx context.Context, in *emailInput) (*resource.Versioned[protocol.Account], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Auth.ChangeEmail(ctx, exchange.AuthOf(ctx), in.Body.Email, version))
}

type nameInput struct {
	resource.IfMatch
	Body struct {
		DisplayName string `json:"display_name" maxLength:"200" doc:"1 to 100 characters."`
		Version     *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *Handlers) changeName(ctx context.Context, in *nameInput) (*resource.Versioned[protocol.Account], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Auth.ChangeName(ctx, exchange.AuthOf(ctx), in.Body.DisplayName, version))
}
