package accounts

import (
	"context"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/persistence/accounts"
	"turnstone/protocol"
)

type listIdentitiesInput struct{ resource.PageInput }

func (h *Handlers) listIdentities(ctx context.Context, in *listIdentitiesInput) (*resource.Body[protocol.List[protocol.Identity]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "identities", func(after *accounts.IdentityPosition) ([]protocol.Identity, *accounts.IdentityPosition, error) {
		return h.Auth.OIDC.List(ctx, exchange.AuthOf(ctx), after, in.Limit)
	})
}

type identityPath struct {
	IdentityID protocol.IdentityID `path:"identity_id"`
}

func (h *Handlers) unlinkIdentity(ctx context.Context, in *identityPath) (*resource.Nothing, error) {
	return nil, h.Auth.OIDC.Unlink(ctx, exchange.AuthOf(ctx), in.IdentityID)
}
