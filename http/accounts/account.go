package accounts

import (
	"context"
	_ "embed" // the descriptions of operations

	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/persistence/audit"
	"turnstone/protocol"
)

//go:embed change_email.md
var changeEmailDescription string

func (h *Handlers) accountRoutes() []route.Route {
	return []route.Route{
		route.Call("GET", "/account/identities", "listIdentities", "List identities", route.Lists, h.listIdentities).
			DescribedAs("Lists the identities at OpenID providers with which the account signs in, in the order in which they were linked. `GET /auth/oidc/{provider}/start` with `link` links another one."),
		route.Call("DELETE", "/account/identities/{identity_id}", "unlinkIdentity", "Unlink an identity", route.Writes.Recent(), h.unlinkIdentity).
			DescribedAs("Removes an identity from the account, which cannot sign in with it any more. Sessions that it has signed in to continue. The last way to sign in to an account is not removed (409, with the identity in `current`). Requires a sign-in within the last ten minutes.").
			WithCodes(protocol.CodeConflict),
		route.Call("GET", "/account/security-log", "listSecurityLog", "List security events", route.Lists, h.listSecurityLog).
			DescribedAs("Lists what happened to the account: sign-ins, sessions, changes to passwords, passkeys, identities and the email address, shares, exports and deletions, and refused requests. The newest events are first. Events are kept for 400 days."),
		route.Call("GET", "/account", "getAccount", "Get the account", route.Reads, h.getAccount).
			DescribedAs("Returns the signed-in account with its limits, and how much of them is used and left: live turns, files and their bytes, and the model tokens of the day. The limits of requests are in the headers of each response."),
		route.Call("PUT", "/account/email", "changeEmail", "Change the email address", route.Writes.Recent(), h.changeEmail).
			DescribedAs(changeEmailDescription).
			WithExample(route.Object{"email": "ada@example.net"}).
			WithCodes(protocol.CodeEmailTaken, protocol.CodeStaleVersion),
		route.Call("PUT", "/account/name", "changeName", "Change the display name", route.Writes, h.changeName).
			DescribedAs("Changes the display name of the account. With the version of the account in If-Match or in `version`, an account that has changed since is not changed: 409 `stale_version`.").
			WithExample(route.Object{"display_name": "Ada Lovelace"}).
			WithCodes(protocol.CodeStaleVersion),
		route.Call("GET", "/account/settings", "getSettings", "Get the account's preferences", route.Reads, h.getSettings).
			DescribedAs("Returns the preferences. Until they are first changed, they are the defaults, with version 0."),
		route.Call("PUT", "/account/settings", "putSettings", "Replace the account's preferences", route.Writes, h.putSettings).
			DescribedAs("Replaces all preferences. Pass the version that the change is based on in If-Match or in `version`; if the preferences have changed since that version, the request fails with 409 `stale_version`. Without a version, the last write wins.").
			WithExample(route.Object{"language": "en", "theme": "system", "send_key": "enter", "busy_action": "queue", "steering_delivery": "next_step", "default_profile": "auto", "version": 3}).
			WithCodes(protocol.CodeStaleVersion),
		route.Call("GET", "/account/instructions", "getAccountInstructions", "Get the account's instructions", route.Reads, h.getInstructions).
			DescribedAs("Returns the instructions that the account gives for all of its conversations. Instructions that were never written are empty and have version 0."),
		route.Call("PUT", "/account/instructions", "putAccountInstructions", "Replace the account's instructions", route.Writes, h.putInstructions).WithMaxBody(route.MediumBody).
			DescribedAs("Stores a new version of the instructions of the account. The model gets them in every turn that starts from now on, after those of the project; temporary conversations are not excepted. Requires their current version in If-Match or in `version`.").
			WithExample(route.Object{"content": "I am a nurse. Answer briefly.", "version": 0}).
			WithCodes(protocol.CodeStaleVersion, protocol.CodeVersionRequired),
	}
}

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
	account := router.CallerOf(ctx).Account
	limits, err := h.limits(ctx, account.AccountID)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(accountState{Account: account, Limits: limits}, account.Version), nil
}

type securityLogInput struct{ resource.PageInput }

func (h *Handlers) listSecurityLog(ctx context.Context, in *securityLogInput) (*resource.Body[protocol.List[protocol.SecurityLogEntry]], error) {
	const scope = "security log"
	caller := router.CallerOf(ctx)
	after, err := resource.OpenCursor[audit.Position](caller, h.Keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := h.SecurityLog.ListEntries(ctx, caller.AccountID, after, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.Listed(caller, h.Keys, scope, page, next), nil
}

type emailInput struct {
	resource.IfMatch
	Body struct {
		Email   string `json:"email" maxLength:"254" format:"email"`
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *Handlers) changeEmail(ctx context.Context, in *emailInput) (*resource.Versioned[*protocol.Account], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	account, err := h.Auth.ChangeEmail(ctx, router.AuthOf(ctx), in.Body.Email, version)
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

func (h *Handlers) changeName(ctx context.Context, in *nameInput) (*resource.Versioned[*protocol.Account], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	account, err := h.Auth.ChangeName(ctx, router.AuthOf(ctx), in.Body.DisplayName, version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(account, account.Version), nil
}
