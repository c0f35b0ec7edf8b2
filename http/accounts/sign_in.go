package accounts

import (
	"context"
	stdhttp "net/http"

	"github.com/danielgtaylor/huma/v2"

	"turnstone/http/exchange"
	"turnstone/protocol"
)

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
	return signedInAs(h.Auth.Register(ctx, exchange.AuthOf(ctx), in.Body.Email, in.Body.Password, in.Body.DisplayName))
}

type loginInput struct {
	Body struct {
		Email    string `json:"email" maxLength:"254"`
		Password string `json:"password" maxLength:"1024"`
	}
}

func (h *Handlers) login(ctx context.Context, in *loginInput) (*signedIn, error) {
	return signedInAs(h.Auth.SignIn(ctx, exchange.AuthOf(ctx), in.Body.Email, in.Body.Password))
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
	return signedInAs(h.Auth.Reauthenticate(ctx, exchange.AuthOf(ctx), in.Body.Password))
}

type passwordInput struct {
	Body struct {
		CurrentPassword string `json:"current_password,omitempty" maxLength:"1024" doc:"Required unless the account has no password and has signed in within the last ten minutes."`
		NewPassword     string `json:"new_password" maxLength:"1024"`
	}
}

func (h *Handlers) changePassword(ctx context.Context, in *passwordInput) (*signedIn, error) {
	return signedInAs(h.Auth.ChangePassword(ctx, exchange.AuthOf(ctx), in.Body.CurrentPassword, in.Body.NewPassword))
}
