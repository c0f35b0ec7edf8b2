package accounts

import (
	"context"
	stdhttp "net/http"

	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/http/router"
	"turnstone/protocol"
)

func (h *Handlers) recoveryRoutes() []route.Route {
	const exampleToken = "mt1_AZYN5YgOcQ2mY3Vx0bW3UgGWDeWIDnEOpmN1cdG1t1I"
	return []route.Route{
		route.Call("POST", "/auth/password/forgot", "requestPasswordReset", "Request a mail to reset the password", route.PublicWrites, h.forgotPassword).
			DescribedAs("Mails a link with which a new password can be set, once and within one hour. The response is the same whether or not an account signs in with the address and a password, and takes the same time; the account is looked for afterwards. Accounts without a password get no mail. Few mails are sent to one address and for one network; then the request gets 429. If the service sends no mail, it gets 403 `mail_not_configured`.").
			WithExample(route.Object{"email": "ada@example.org"}).
			WithCodes(protocol.CodeMailNotConfigured).WithStatus(stdhttp.StatusAccepted),
		route.Call("POST", "/auth/password/reset", "resetPassword", "Set a new password with a mailed token", route.PublicWrites, h.resetPassword).
			DescribedAs("Sets a new password with the token of the link of a mail. All sessions of the account end, and so do its other links and a change of its address that is not confirmed. The owner is informed by mail. Nobody is signed in: sign in with the new password. A token that is unknown, used or expired gets 422 for `body.token`; a password that is refused does not use up the token.").
			WithExample(route.Object{"token": exampleToken, "password": "two calm tides at noon"}),
		route.Call("POST", "/auth/email/verify", "verifyEmail", "Confirm a new email address with a mailed token", route.PublicWrites, h.verifyEmail).
			DescribedAs("Changes the email address of an account to the one to which the link with the token was mailed (`PUT /account/email`). It works once, within 24 hours, and without a session. A token that is unknown, used, withdrawn or expired gets 422. If another account signs in with the address meanwhile, the request fails with 409 `email_taken`.").
			WithExample(route.Object{"token": exampleToken}).
			WithCodes(protocol.CodeEmailTaken),
		route.Call("POST", "/account/pending-email/resend", "resendPendingEmail", "Send another confirmation mail", route.Writes, h.resendEmail).
			DescribedAs("Mails another link to the address that waits for its confirmation. The earlier link ends, and the new one works for 24 hours. 404: no address waits. If another account signs in with the address meanwhile, nothing is mailed and the request fails with 409 `email_taken`, as `PUT /account/email` does: end the change, or request another address.").
			WithCodes(protocol.CodeMailNotConfigured, protocol.CodeEmailTaken),
		route.Call("DELETE", "/account/pending-email", "cancelPendingEmail", "Cancel a change of the email address", route.Writes, h.cancelEmail).
			DescribedAs("Ends a change of the email address that is not confirmed; its link ends. 404: no address waits. With the version of the account in If-Match, an account that has changed since is not changed: 409 `stale_version`.").
			WithCodes(protocol.CodeStaleVersion),
	}
}

type forgotInput struct {
	Body struct {
		Email string `json:"email" maxLength:"254" format:"email"`
	}
}

func (h *Handlers) forgotPassword(ctx context.Context, in *forgotInput) (*resource.Nothing, error) {
	return nil, h.Auth.Recovery.Forgot(ctx, router.AuthOf(ctx), in.Body.Email)
}

type resetInput struct {
	Body struct {
		Token    string `json:"token" maxLength:"200" doc:"From the fragment of the link."`
		Password string `json:"password" maxLength:"1024" doc:"At least 8 characters; 15 or more are recommended."`
	}
}

func (h *Handlers) resetPassword(ctx context.Context, in *resetInput) (*resource.Nothing, error) {
	return nil, h.Auth.Recovery.Reset(ctx, router.AuthOf(ctx), in.Body.Token, in.Body.Password)
}

type verifyInput struct {
	Body struct {
		Token string `json:"token" maxLength:"200" doc:"From the fragment of the link."`
	}
}

// confirmedEmail is the response to a confirmed address.
type confirmedEmail struct {
	Email string `json:"email" doc:"The address that the account has now."`
}

func (h *Handlers) verifyEmail(ctx context.Context, in *verifyInput) (*resource.Body[confirmedEmail], error) {
	email, err := h.Auth.Recovery.ConfirmEmail(ctx, router.AuthOf(ctx), in.Body.Token)
	if err != nil {
		return nil, err
	}
	return resource.OK(confirmedEmail{email}), nil
}

func (h *Handlers) resendEmail(ctx context.Context, _ *resource.Nothing) (*resource.Versioned[*protocol.Account], error) {
	account, err := h.Auth.Recovery.ResendEmail(ctx, router.AuthOf(ctx))
	if err != nil {
		return nil, err
	}
	return resource.WithETag(account, account.Version), nil
}

type cancelEmailInput struct{ resource.IfMatch }

func (h *Handlers) cancelEmail(ctx context.Context, in *cancelEmailInput) (*resource.Nothing, error) {
	version, err := in.Version(nil)
	if err != nil {
		return nil, err
	}
	return nil, h.Auth.Recovery.CancelEmail(ctx, router.AuthOf(ctx), version)
}
