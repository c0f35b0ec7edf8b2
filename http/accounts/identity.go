package accounts

import (
	"context"

	"turnstone/http/resource"
	"turnstone/http/router"
	"turnstone/persistence/accounts"
	"turnstone/protocol"
)

type listIdentitiesInput struct{ resource.PageInput }

func (h *Handlers) listIdentities(ctx context.Context, in *listIdentitiesInput) (*resource.Body[protocol.List[protocol.Identity]], error) {
	const scope = "identities"
	caller := router.CallerOf(ctx)
	after, err := resource.OpenCursor[accounts.IdentityPosition](caller, h.Keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := h.Auth.OIDC.List(ctx, router.AuthOf(ctx), after, in.Limit)
	if err != nil {
		return nil, err
	}
	return resource.Listed(caller, h.Keys, scope, page, next), nil
}

type identityPath struct {
	IdentityID protocol.IdentityID `path:"identity_id"`
}

func (h *Handlers) unlinkIdentity(ctx context.Context, in *identityPath) (*resource.Nothing, error) {
	return nil, h.Auth.OIDC.Unlink(ctx, router.AuthOf(ctx), in.IdentityID)
}
