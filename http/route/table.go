package route

import (
	"context"
	"encoding"
	"slices"

	"turnstone/protocol"
)

// Table is what a noun adds to the service, or what all nouns add: their routes, the parameters of their paths, and the
// groups in which the document lists them. Any noun may use a parameter or a tag; one of them declares it.
type Table struct {
	Tags   []Tag // in the order of the document
	Params []Param
	Routes []Route
}

// Tag describes a group of routes in the document. A route is in the group that its path begins with; see Route.WithTag.
type Tag struct{ Name, Description string }

// Join returns the table of several nouns.
func Join(nouns ...Table) (all Table) {
	for _, noun := range nouns {
		all.Tags, all.Params, all.Routes = append(all.Tags, noun.Tags...), append(all.Params, noun.Params...), append(all.Routes, noun.Routes...)
	}
	return all
}

// With returns the table with further routes.
func (t Table) With(routes ...Route) Table {
	t.Routes = slices.Concat(t.Routes, routes)
	return t
}

// Param is a parameter of paths: how its value is spelled and, for operations with a body, whether the caller owns what it
// names. Ownership is checked before the body is read, so that no 415 or 422 reveals that the resource of another account
// exists.
type Param struct {
	Name  string
	Parse func(value string) error // returns an error for a value that names nothing
	// Owns returns protocol.CodeNotFound if the account does not have what the value names. Nil: it is not checked before the
	// body is read, so the parameter cannot be the first one of an operation with a body.
	Owns func(ctx context.Context, account protocol.AccountID, value string) error
}

// Identifier returns a parameter whose value is an identifier. owns is as Param.Owns, and may be nil.
func Identifier[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](name string, owns func(ctx context.Context, account protocol.AccountID, id T) error) Param {
	param := Param{Name: name, Parse: func(value string) error { return P(new(T)).UnmarshalText([]byte(value)) }}
	if owns != nil {
		param.Owns = func(ctx context.Context, account protocol.AccountID, value string) error {
			var id T
			if err := P(&id).UnmarshalText([]byte(value)); err != nil {
				return &protocol.Error{Code: protocol.CodeNotFound}
			}
			return owns(ctx, account, id)
		}
	}
	return param
}

// Text returns a parameter whose value is any text.
func Text(name string) Param { return Param{Name: name, Parse: func(string) error { return nil }} }
