package resource

import (
	"encoding/json"

	"turnstone/http/auth"
	"turnstone/protocol"
)

// A cursor is an encrypted position in a list. A client can neither read nor create one, and it is valid only for the
// account, the list and the filter for which it was created.

// List returns the page of a list that a request asks for. scope names the list and its filter. read returns the items after a
// position, nil for the start, and the position after which the next page starts; nil at the end.
func List[T, P any](caller *auth.Caller, keys *auth.Keys, in PageInput, scope string, read func(after *P) (page []T, next *P, err error)) (*Body[protocol.List[T]], error) {
	after, err := OpenCursor[P](caller, keys, in.Cursor, scope)
	if err != nil {
		return nil, err
	}
	page, next, err := read(after)
	if err != nil {
		return nil, err
	}
	return Listed(caller, keys, scope, page, next), nil
}

// Listed returns a page of a list. next is the position after which the next page starts; nil at the end.
func Listed[T, P any](caller *auth.Caller, keys *auth.Keys, scope string, page []T, next *P) *Body[protocol.List[T]] {
	list := protocol.List[T]{Data: page}
	if next != nil {
		list.NextCursor = SealCursor(caller, keys, scope, next)
		list.HasMore = true
	}
	return OK(list)
}

// SealCursor encrypts a position; nil stays nil. scope names the list and its filter.
func SealCursor[P any](caller *auth.Caller, keys *auth.Keys, scope string, at *P) *string {
	if at == nil {
		return nil
	}
	plain, err := json.Marshal(at)
	if err != nil {
		panic("resource: encoding a cursor: " + err.Error())
	}
	text := keys.SealCursor(plain, cursorScope(caller, scope))
	return &text
}

// OpenCursor decrypts a position; nil if there is no cursor. An invalid cursor and that of another account get the same
// error.
func OpenCursor[P any](caller *auth.Caller, keys *auth.Keys, text, scope string) (*P, error) {
	if text == "" {
		return nil, nil // the start of a list has no position
	}
	if plain, opened := keys.OpenCursor(text, cursorScope(caller, scope)); opened {
		at := new(P)
		if json.Unmarshal(plain, at) == nil {
			return at, nil
		}
	}
	return nil, protocol.Invalid("query.cursor", "is not a cursor of this list")
}

func cursorScope(caller *auth.Caller, scope string) []byte {
	account := caller.AccountID
	return append(account[:], scope...)
}
