package accounts

import (
	"context"
	stdhttp "net/http"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/protocol"
)

func (h *Handlers) signInRoutes() []route.Route {
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

func (h *Handlers) register(ctx context.Context, in *registerInput) (*signedIn, error) {
	return signedInAs(h.Auth.Register(ctx, router.AuthOf(ctx), in.Body.Email, in.Body.Password, in.Body.DisplayName))
}

type loginInput struct {
	Body struct {
		Email    string `json:"email" maxLength:"254"`
		Password string `json:"password" maxLength:"1024"`
	}
}

func (h *Handlers) login(ctx context.Context, in *loginInput) (*signedIn, error) {
	return signedInAs(h.Auth.SignIn(ctx, router.AuthOf(ctx), in.Body.Email, in.Body.Password))
}

// mayReturnUnauthorized documents that a route that needs no session can respond 401.
func mayReturnUnauthorized(_ huma.API, op *huma.Operation) {
	op.Errors = append(op.Errors, stdhttp.StatusUnauthorized)
}

type reauthenticateInput struct {
	Body struct {
		Password string `json:"password" maxLength:"1024"`
	}
}

func (h *Handlers) reauthenticate(ctx context.Context, in *reauthenticateInput) (*signedIn, error) {
	return signedInAs(h.Auth.Reauthenticate(ctx, router.AuthOf(ctx), in.Body.Password))
}

type passwordInput struct {
	Body struct {
		CurrentPassword string `json:"current_password,omitempty" maxLength:"1024" doc:"Required unless the account has no password and has signed in within the last ten minutes."`
		NewPassword     string `json:"new_password" maxLength:"1024"`
	}
}

func (h *Handlers) changePassword(ctx context.Context, in *passwordInput) (*signedIn, error) {
	return signedInAs(h.Auth.ChangePassword(ctx, router.AuthOf(ctx), in.Body.CurrentPassword, in.Body.NewPassword))
}
