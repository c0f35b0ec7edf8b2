package accounts

import (
	"bytes"
	"context"
	"slices"
	"time"

	"turnstone/http/exchange"
	"turnstone/http/resource"
	"turnstone/http/route"
	"turnstone/persistence/accounts"
	"turnstone/protocol"
)

// credentialExample is a response of an authenticator in examples.
var credentialExample = route.Object{
	"id": "kx7bW3Uq0mY", "rawId": "kx7bW3Uq0mY", "type": "public-key",
	"response": route.Object{"clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0", "authenticatorData": "SZYN5YgO", "signature": "MEUCIQ", "userHandle": "AZYN5YgO"},
}

type listPasskeysInput struct{ resource.PageInput }

// passkeyPosition is the position after a passkey in the list, which is in the order of creation.
type passkeyPosition struct {
	CreatedAt time.Time
	PasskeyID protocol.PasskeyID
}

func (p *passkeyPosition) precedes(passkey *protocol.Passkey) bool {
	order := passkey.CreatedAt.Compare(p.CreatedAt)
	return order > 0 || order == 0 && bytes.Compare(passkey.PasskeyID[:], p.PasskeyID[:]) > 0
}

// listPasskeys returns a page of the passkeys of the account, which has at most 20 of them.
func (h *Handlers) listPasskeys(ctx context.Context, in *listPasskeysInput) (*resource.Body[protocol.List[protocol.Passkey]], error) {
	caller := exchange.CallerOf(ctx)
	return resource.List(caller, h.Keys, in.PageInput, "passkeys", func(after *passkeyPosition) (page []protocol.Passkey, next *passkeyPosition, err error) {
		if page, err = h.Auth.Passkeys.List(ctx, exchange.AuthOf(ctx)); err != nil {
			return nil, nil, err
		}
		if after != nil {
			page = slices.DeleteFunc(page, func(passkey protocol.Passkey) bool { return !after.precedes(&passkey) })
		}
		if len(page) > in.Limit {
			page = page[:in.Limit]
			last := page[in.Limit-1]
			next = &passkeyPosition{last.CreatedAt, last.PasskeyID}
		}
		return page, next, nil
	})
}

type renamePasskeyInput struct {
	resource.IfMatch
	PasskeyID protocol.PasskeyID `path:"passkey_id"`
	Body      struct {
		Name    string `json:"name" maxLength:"200" doc:"1 to 100 characters."`
		Version *int64 `json:"version,omitempty" doc:"The version that the change is based on; an alternative to If-Match. Without either, the last write wins."`
	}
}

func (h *Handlers) renamePasskey(ctx context.Context, in *renamePasskeyInput) (*resource.Versioned[protocol.Passkey], error) {
	version, err := in.Version(in.Body.Version)
	if err != nil {
		return nil, err
	}
	return resource.WithETag(h.Auth.Passkeys.Rename(ctx, exchange.AuthOf(ctx), &accounts.PasskeyChange{PasskeyID: in.PasskeyID, Version: version}, in.Body.Name))
}

type deletePasskeyInput struct {
	resource.IfMatch
	PasskeyID protocol.PasskeyID `path:"passkey_id"`
}

func (h *Handlers) deletePasskey(ctx context.Context, in *deletePasskeyInput) (*resource.Nothing, error) {
	version, err := in.Version(nil)
	if err != nil {
		return nil, err
	}
	return nil, h.Auth.Passkeys.Delete(ctx, exchange.AuthOf(ctx), &accounts.PasskeyChange{PasskeyID: in.PasskeyID, Version: version})
}

// challenged is a request to an authenticator, with the cookie that package auth sets.
type challenged[T any] struct{ Body *T }

func challengedWith[T any](request *T, err error) (*challenged[T], error) {
	if err != nil {
		return nil, err
	}
	return &challenged[T]{request}, nil
}

func (h *Handlers) startRegistration(ctx context.Context, _ *resource.Nothing) (*challenged[protocol.PasskeyCreation], error) {
	return challengedWith(h.Auth.Passkeys.StartRegistration(ctx, exchange.AuthOf(ctx)))
}

type finishRegistrationInput struct {
	Body struct {
		Name       string                      `json:"name,omitempty" maxLength:"200" doc:"1 to 100 characters. Default: Passkey."`
		Credential protocol.PasskeyAttestation `json:"credential"`
	}
}

// passkeyAdded is a response that issues a session token, in the cookie that package auth sets.
type passkeyAdded struct{ Body *protocol.AddedPasskey }

func (h *Handlers) finishRegistration(ctx context.Context, in *finishRegistrationInput) (*passkeyAdded, error) {
	added, err := h.Auth.Passkeys.FinishRegistration(ctx, exchange.AuthOf(ctx), in.Body.Name, &in.Body.Credential)
	if err != nil {
		return nil, err
	}
	return &passkeyAdded{added}, nil
}

func (h *Handlers) startSignIn(ctx context.Context, _ *resource.Nothing) (*challenged[protocol.PasskeyRequest], error) {
	return challengedWith(h.Auth.Passkeys.StartSignIn(ctx, exchange.AuthOf(ctx)))
}

type assertionInput struct {
	Body struct {
		Credential protocol.PasskeyAssertion `json:"credential"`
	}
}

func (h *Handlers) finishSignIn(ctx context.Context, in *assertionInput) (*signedIn, error) {
	return signedInAs(h.Auth.Passkeys.FinishSignIn(ctx, exchange.AuthOf(ctx), &in.Body.Credential))
}

func (h *Handlers) startReauthentication(ctx context.Context, _ *resource.Nothing) (*challenged[protocol.PasskeyRequest], error) {
	return challengedWith(h.Auth.Passkeys.StartReauthentication(ctx, exchange.AuthOf(ctx)))
}

func (h *Handlers) finishReauthentication(ctx context.Context, in *assertionInput) (*signedIn, error) {
	return signedInAs(h.Auth.Passkeys.FinishReauthentication(ctx, exchange.AuthOf(ctx), &in.Body.Credential))
}
