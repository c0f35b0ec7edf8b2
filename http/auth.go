package http

import (
	"context"
	stdhttp "net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/auth"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/persistence/accounts"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
)

// accountHandlers handle the requests for sessions, passwords, identities and the settings of an account.
type accountHandlers struct {
	auth     *auth.Service
	sessions Sessions
	settings Settings
	security SecurityLog
	limits   accountLimits
	keys     *auth.Keys
	now      func() time.Time
}

func (h *accountHandlers) routes() []route.Route {
	return []route.Route{
		route.Call("POST", "/auth/register", "register", "Create an account", route.PublicWrites, h.register).
			DescribedAs("Creates an account and signs it in. Email addresses are compared case-insensitively. The response sets the session cookie and contains the CSRF token for subsequent requests.").
			WithExample(route.Object{"email": "ada@example.org", "password": "a calm tide at noon", "display_name": "Ada"}).
			WithCodes(protocol.CodeRegistrationClosed, protocol.CodeEmailTaken).WithStatus(stdhttp.StatusCreated).WithCookies(stdhttp.StatusCreated),
		route.Call("POST", "/auth/login", "login", "Sign in with a password", route.PublicWrites, h.login).
			DescribedAs("The response sets the session cookie and contains the CSRF token. An unknown email address and a wrong password return the same 401 response.").
			WithExample(route.Object{"email": "ada@example.org", "password": "a calm tide at noon"}).Documented(mayReturnUnauthorized).WithCookies(stdhttp.StatusOK),
		route.Call("POST", "/auth/logout", "logout", "Sign out", route.Writes.Unstored(), h.logout).
			DescribedAs("Ends the current session and clears its cookie. Other sessions of the account are not affected."),
		route.Call("GET", "/auth/session", "getSession", "Get the current session", route.Reads.Unstored(), h.getSession).
			DescribedAs("Returns the signed-in account, the CSRF token that requests with unsafe methods require, and the time at which the session expires."),
		route.Call("GET", "/auth/sessions", "listSessions", "List sessions", route.Lists, h.listSessions).
			DescribedAs("Lists the sessions of the account, most recently used first. Each signed-in device has one entry with the time of its last use."),
		route.Call("DELETE", "/auth/sessions", "endOtherSessions", "End all other sessions", route.Writes.Recent(), h.endOtherSessions).
			DescribedAs("Signs out every other device immediately and ends its open streams. Requires a sign-in within the last ten minutes."),
		route.Call("DELETE", "/auth/sessions/{session_id}", "endSession", "End a session", route.Writes, h.endSession).
			DescribedAs("Signs out one device immediately and ends its open streams."),
		route.Call("POST", "/auth/password", "changePassword", "Change the password", route.Writes.Unstored(), h.changePassword).WithCodes(protocol.CodeEmailTaken).
			DescribedAs("Changes the password and ends every other session. Requires the current password or, if the account has no password, a sign-in within the last ten minutes. The response sets a new session cookie and contains a new CSRF token.").
			WithExample(route.Object{"current_password": "a calm tide at noon", "new_password": "two calm tides at noon"}).
			WithCodes(protocol.CodeReauthRequired).WithCookies(stdhttp.StatusOK),
		route.Call("POST", "/auth/reauthenticate", "reauthenticate", "Confirm the password", route.Writes.Unstored(), h.reauthenticate).
			DescribedAs("Verifies the password of the signed-in account again. The response sets a new session cookie and contains a new CSRF token. For ten minutes, operations that require a recent sign-in accept them.").
			WithExample(route.Object{"password": "a calm tide at noon"}).
			WithCodes(protocol.CodeConflict).WithCookies(stdhttp.StatusOK),
		route.Stream("GET", "/auth/oidc/{provider}/start", "startOIDC", "Start a sign-in with an OpenID provider", route.Redirects, h.oidcStart).
			DescribedAs("For browsers. Redirects to the provider's authorization page with a state, a nonce and a PKCE challenge. With `link`, the identity is linked to the signed-in account.").
			WithCodes(protocol.CodeReauthRequired, protocol.CodeOrigin).WithCookies(stdhttp.StatusFound).Documented(route.DocumentRedirect),
		route.Stream("GET", "/auth/oidc/{provider}/callback", "finishOIDC", "Complete a sign-in with an OpenID provider", route.Redirects, h.oidcCallback).
			DescribedAs("For browsers. The provider redirects the browser to this path. Verifies the provider's response, signs in, and redirects to the `return_to` path of the start request.").
			WithCodes(protocol.CodeCSRF, protocol.CodeRegistrationClosed, protocol.CodeConflict, protocol.CodeEmailTaken).Documented(route.DocumentRedirect).
			WithCookies(stdhttp.StatusFound, stdhttp.StatusUnauthorized, stdhttp.StatusForbidden, stdhttp.StatusConflict, stdhttp.StatusServiceUnavailable),
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
			DescribedAs("Changes the email address of the account. If the service sends mails, the account keeps its address until the new one is confirmed: a link is mailed to the new address, which works for 24 hours (`POST /auth/email/verify`), the account has it as `pending_email`, and its present address is informed. The present address in the request ends such a change. Otherwise the address changes at once. If the account has a password, the new address is then its sign-in name. Sessions continue. Requires a sign-in within the last ten minutes. If another account signs in with the address, the request fails with 409 `email_taken`; the same address again changes nothing. With the version of the account in If-Match or in `version`, an account that has changed since is not changed: 409 `stale_version`.").
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
	}
}

type registerInput struct {
	Body struct {
		Email       string `json:"email" maxLength:"254" format:"email"`
		Password    string `json:"password" maxLength:"1024" doc:"At least 8 characters; 15 or more are recommended."`
		DisplayName string `json:"display_name,omitempty" maxLength:"200" doc:"1 to 100 characters. Default: the part of the email address before the @."`
	}
}

// signedIn is a response that issues a session token, in the cookie that package auth sets.
type signedIn struct {
	Body protocol.SessionInfo
}

func signedInAs(info protocol.SessionInfo, err error) (*signedIn, error) {
	if err != nil {
		return nil, err
	}
	return &signedIn{info}, nil
}

func (h *accountHandlers) register(ctx context.Context, in *registerInput) (*signedIn, error) {
	return signedInAs(h.auth.Register(ctx, router.AuthOf(ctx), in.Body.Email, in.Body.Password, in.Body.DisplayName))
}

type loginInput struct {
	Body struct {
		Email    string `json:"email" maxLength:"254"`
		Password string `json:"password" maxLength:"1024"`
	}
}

func (h *accountHandlers) login(ctx context.Context, in *loginInput) (*signedIn, error) {
	return signedInAs(h.auth.SignIn(ctx, router.AuthOf(ctx), in.Body.Email, in.Body.Password))
}

// mayReturnUnauthorized documents that a route that needs no session can respond 401.
func mayReturnUnauthorized(_ huma.API, op *huma.Operation) {
	op.Errors = append(op.Errors, stdhttp.StatusUnauthorized)
}

func (h *accountHandlers) getSession(ctx context.Context, _ *resource.Nothing) (*resource.Body[protocol.SessionInfo], error) {
	return resource.OK(h.auth.SessionInfo(router.CallerOf(ctx))), nil
}

// signedOut is a response that clears the session cookie, the cache and the storage of the browser.
type signedOut struct {
	Cookie string `header:"Set-Cookie"`
	Clear  string `header:"Clear-Site-Data"`
}

func (h *accountHandlers) logout(ctx context.Context, _ *resource.Nothing) (*signedOut, error) {
	if err := failpoint.Respond(failpoint.SessionAfterRevoke, h.auth.SignOut(ctx, router.AuthOf(ctx))); err != nil {
		return nil, err
	}
	return &signedOut{Cookie: h.auth.ExpiredCookie(), Clear: `"cache","storage"`}, nil
}

type listSessionsInput struct{ resource.PageInput }

func (h *accountHandlers) listSessions(ctx context.Context, in *listSessionsInput) (*resource.Body[protocol.List[protocol.Device]], error) {
	const scope = "sessions"
	after, err := resource.OpenCursor[accounts.SessionPosition](router.CallerOf(ctx), h.keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	caller, now := router.CallerOf(ctx), h.now()
	page, next, err := h.sessions.ListSessions(ctx, caller.AccountID, &accounts.SessionQuery{
		Current: caller.SessionID, Now: now, IdleSince: now.Add(-auth.SessionIdle), After: after, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	return resource.Listed(router.CallerOf(ctx), h.keys, scope, page, next), nil
}

type sessionPath struct {
	SessionID protocol.SessionID `path:"session_id"`
}

func (h *accountHandlers) endSession(ctx context.Context, in *sessionPath) (*resource.Nothing, error) {
	return nil, failpoint.Respond(failpoint.SessionAfterRevoke, h.auth.EndSession(ctx, router.AuthOf(ctx), in.SessionID))
}

func (h *accountHandlers) endOtherSessions(ctx context.Context, _ *resource.Nothing) (*resource.Nothing, error) {
	return nil, h.auth.EndOtherSessions(ctx, router.AuthOf(ctx))
}

type reauthenticateInput struct {
	Body struct {
		Password string `json:"password" maxLength:"1024"`
	}
}

func (h *accountHandlers) reauthenticate(ctx context.Context, in *reauthenticateInput) (*signedIn, error) {
	return signedInAs(h.auth.Reauthenticate(ctx, router.AuthOf(ctx), in.Body.Password))
}

type passwordInput struct {
	Body struct {
		CurrentPassword string `json:"current_password,omitempty" maxLength:"1024" doc:"Required unless the account has no password and has signed in within the last ten minutes."`
		NewPassword     string `json:"new_password" maxLength:"1024"`
	}
}

func (h *accountHandlers) changePassword(ctx context.Context, in *passwordInput) (*signedIn, error) {
	return signedInAs(h.auth.ChangePassword(ctx, router.AuthOf(ctx), in.Body.CurrentPassword, in.Body.NewPassword))
}
