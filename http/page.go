package http

// PageInput is embedded by inputs of lists.
type PageInput struct {
	Cursor string `query:"cursor" maxLength:"1024" doc:"next_cursor of the page before; opaque."`
	Limit  int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"A page has fewer items when they are large: about 1 MiB, and at least one."`
}

// body is an answer that is only a body.
type body[T any] struct{ Body T }

// versioned is an answer with the ETag of what it shows.
type versioned[T any] struct {
	ETag string `header:"ETag"`
	Body T
}

// accepted is for answers of 202 and 201 whose status the handler decides.
type withStatus[T any] struct {
	Status int
	Body   T
}

func ok[T any](value T) *body[T] { return &body[T]{Body: value} }

func withETag[T any](value T, version int64) *versioned[T] {
	return &versioned[T]{ETag: ETagOf(version), Body: value}
}

// nothing is an input without fields, or an answer without a body.
type nothing struct{}
