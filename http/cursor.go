package http

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"

	"turnstone/protocol"
)

// A cursor is a position in a list, sealed: a client can neither read it nor make one, and it opens only for the account
// and the filter that it was made for.

// listed makes a page of a list. next is where the following page begins; nil at the end.
func listed[T, P any](ctx context.Context, s *Server, scope string, page []T, next *P) *body[protocol.List[T]] {
	list := protocol.List[T]{Data: page}
	if next != nil {
		list.NextCursor = sealCursor(ctx, s, scope, next)
		list.HasMore = true
	}
	return ok(list)
}

// sealCursor hides a position; nil stays nil. scope names the list and its filter.
func sealCursor[P any](ctx context.Context, s *Server, scope string, at *P) *string {
	if at == nil {
		return nil
	}
	plain, err := json.Marshal(at)
	if err != nil {
		panic("http: a position that cannot be encoded: " + err.Error())
	}
	aead := s.keys.live[0].cursors
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	text := encode(aead.Seal(nonce, nonce, plain, cursorScope(ctx, scope)))
	return &text
}

// openCursor reads a position back; nil when there is no cursor. Garbage and another account's are told alike.
func openCursor[P any](ctx context.Context, s *Server, text, scope string) (*P, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // the start of a list has no position
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		for _, set := range s.keys.live {
			if plain, opened := set.open(sealed, cursorScope(ctx, scope)); opened {
				at := new(P)
				if json.Unmarshal(plain, at) == nil {
					return at, nil
				}
			}
		}
	}
	return nil, protocol.Invalid("query.cursor", "is not a cursor of this list")
}

func cursorScope(ctx context.Context, scope string) []byte {
	account := callerOf(ctx).AccountID
	return append(account[:], scope...)
}

func (k *keySet) open(sealed, scope []byte) ([]byte, bool) {
	size := k.cursors.NonceSize()
	if len(sealed) < size {
		return nil, false
	}
	plain, err := k.cursors.Open(nil, sealed[:size], sealed[size:], scope)
	return plain, err == nil
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
