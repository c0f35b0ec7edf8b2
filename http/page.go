package http

import "turnstone/http/response"

// PageInput is embedded by inputs of lists.
type PageInput struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"An opaque cursor from an earlier page of the list, for example its next_cursor."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"The maximum number of items in the page. A page of large items has fewer: it has at most about 1 MiB, or one item."`
}

// body is a response that has only a body.
type body[T any] struct{ Body T }

// versioned is a response with the ETag of the resource in its body.
type versioned[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// withStatus is a response whose status the handler decides.
type withStatus[T any] struct {
	Status int
	Body   T
}

func ok[T any](value T) *body[T] { return &body[T]{Body: value} }

func withETag[T any](value T, version int64) *versioned[T] {
	return &versioned[T]{ETag: response.ETagOf(version), Body: value}
}

// nothing is an input without fields, or a response without a body.
type nothing struct{}
