package resource

import "turnstone/http/response"

// PageInput is embedded by inputs of lists.
type PageInput struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"An opaque cursor from an earlier page of the list, for example its next_cursor."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"The maximum number of items in the page. A page of large items has fewer: it has at most about 1 MiB, or one item."`
}

// Body is a response that has only a body.
type Body[T any] struct{ Body T }

// Versioned is a response with the ETag of the resource in its body.
type Versioned[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// WithStatus is a response whose status the handler decides.
type WithStatus[T any] struct {
	Status int
	Body   T
}

// OK returns a response with a body.
func OK[T any](value T) *Body[T] { return &Body[T]{Body: value} }

// WithETag returns the response with a resource and the ETag of its version, or the error of the call that returned both.
func WithETag[T any, P interface {
	*T
	Revised
}](value P, err error) (*Versioned[T], error) {
	if err != nil {
		return nil, err
	}
	return &Versioned[T]{ETag: response.ETagOf(value.CurrentVersion()), Body: *value}, nil
}

// Nothing is an input without fields, or a response without a body.
type Nothing struct{}
