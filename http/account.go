package http

import (
	"context"

	"turnstone/http/resource"
	"turnstone/http/router"
	"turnstone/protocol"
)

type emailInput struct {
	Body struct {
		Email string `json:"email" maxLength:"254" format:"email"`
	}
}

func (h *accountHandlers) changeEmail(ctx context.Context, in *emailInput) (*resource.Body[*protocol.Account], error) {
	account, err := h.auth.ChangeEmail(ctx, router.AuthOf(ctx), in.Body.Email)
	if err != nil {
		return nil, err
	}
	return resource.OK(account), nil
}

type nameInput struct {
	Body struct {
		DisplayName string `json:"display_name" maxLength:"200" doc:"1 to 100 characters."`
	}
}

func (h *accountHandlers) changeName(ctx context.Context, in *nameInput) (*resource.Body[*protocol.Account], error) {
	account, err := h.auth.ChangeName(ctx, router.AuthOf(ctx), in.Body.DisplayName)
	if err != nil {
		return nil, err
	}
	return resource.OK(account), nil
}
