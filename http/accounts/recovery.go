package accounts

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/protocol"
)

type forgotInput struct {
	Body struct {
		Email string `json:"email" maxLength:"254" format:"email"`
	}
}

func (h *Handlers) forgotPassword(ctx context.Context, in *forgotInput) (*resource.Nothing, error) {
	return nil, h.Auth.Recovery.Forgot(ctx, exchange.AuthOf(ctx), in.Body.Email)
}

type resetInput struct {
	Body struct {
		Token    string `json:"token" maxLength:"200" doc:"From the fragment of the link."`
		Password string `json:"password" maxLength:"1024" doc:"At least 8 characters; 15 or more are recommended."`
	}
}

func (h *Handlers) resetPassword(ctx context.Context, in *resetInput) (*resource.Nothing, error) {
	return nil, h.Auth.Recovery.Reset(ctx, exchange.AuthOf(ctx), in.Body.Token, in.Body.Password)
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
	email, err := h.Auth.Recovery.ConfirmEmail(ctx, exchange.AuthOf(ctx), in.Body.Token)
	if err != nil {
		return nil, err
	}
	return resource.OK(confirmedEmail{email}), nil
}

func (h *Handlers) resendEmail(ctx context.Context, _ *resource.Nothing) (*resource.Versioned[protocol.Account], error) {
	return resource.WithETag(h.Auth.Recovery.ResendEmail(ctx, exchange.AuthOf(ctx)))
}

type cancelEmailInput struct{ resource.IfMatch }

func (h *Handlers) cancelEmail(ctx context.Context, in *cancelEmailInput) (*resource.Nothing, error) {
	version, err := in.Version(nil)
	if err != nil {
		return nil, err
	}
	return nil, h.Auth.Recovery.CancelEmail(ctx, exchange.AuthOf(ctx), version)
}
