package resource

import (
	"bytes"
	stdhttp "net/http"

	"turnstone/http/response"
	"turnstone/persistence/idempotency"
)

// Addressed is a resource with a path of its own, as in Location; empty: it has none. version is the one in its ETag; 0:
// it has no ETag.
type Addressed interface {
	Address() (path string, version int64)
}

// Created is a response with status 201 and the location of the new resource.
type Created[T any] struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     T
}

// NewCreated returns the response of a request that created a resource.
func NewCreated[T any, P interface {
	*T
	Addressed
}](made P) *Created[T] {
	path, version := made.Address()
	created := &Created[T]{Location: path, Body: *made}
	if version != 0 {
		created.ETag = response.ETagOf(version)
	}
	return created
}

// StoredCreated returns the 201 response to a request with an idempotency key. Its Location is the address of the
// resource or, for a resource without one, the path of the request.
func StoredCreated(path string, made any) (*idempotency.StoredResponse, error) {
	stored := &idempotency.StoredResponse{
		Status: stdhttp.StatusCreated, Headers: map[string]string{"Content-Type": "application/json", "Location": path},
	}
	if addressed, is := made.(Addressed); is {
		location, version := addressed.Address()
		if location != "" {
			stored.Headers["Location"] = location
		}
		if version != 0 {
			stored.Headers["ETag"] = response.ETagOf(version)
		}
	}
	var body bytes.Buffer
	err := response.WriteJSON(&body, made)
	stored.Body = body.Bytes()
	return stored, err
}
