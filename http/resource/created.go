package resource

import (
	"bytes"
	stdhttp "net/http"
	"strings"

	"turnstone/http/response"
	"turnstone/persistence/idempotency"
)

// Addressed is a resource with a path of its own, as in Location. A path without a slash at its beginning follows that of
// the request that creates the resource.
type Addressed interface{ Address() string }

// Revised is a resource with a version, as in its ETag. 0: it was never written.
type Revised interface{ CurrentVersion() int64 }

// Created is a response with status 201, the location of the new resource and its version.
type Created[T any] struct {
	Location string `header:"Location"`
	ETag     string `header:"ETag"`
	Body     T
}

// CreatedOnce is a response with status 201 and the location of a new resource that has no version.
type CreatedOnce[T any] struct {
	Location string `header:"Location"`
	Body     T
}

// NewCreated returns the response of a request to path that created a resource with a version. Only an address that is
// relative needs the path.
func NewCreated[T any, P interface {
	*T
	Addressed
	Revised
}](path string, made P) *Created[T] {
	return &Created[T]{Location: locationAt(path, made.Address()), ETag: response.ETagOf(made.CurrentVersion()), Body: *made}
}

// NewCreatedOnce is NewCreated for a resource without a version.
func NewCreatedOnce[T any, P interface {
	*T
	Addressed
}](path string, made P) *CreatedOnce[T] {
	return &CreatedOnce[T]{Location: locationAt(path, made.Address()), Body: *made}
}

func locationAt(path, location string) string {
	if strings.HasPrefix(location, "/") {
		return location
	}
	return path + "/" + location
}

// StoredCreated returns the response to a request with an idempotency key, with the status of its route. Its Location is the
// address of the resource or, for a resource without one, the path of the request. With status 200 the resource existed
// before, and there is no Location.
func StoredCreated(path string, status int, made any) (*idempotency.StoredResponse, error) {
	stored := &idempotency.StoredResponse{Status: status, Headers: map[string]string{"Content-Type": "application/json"}}
	if addressed, is := made.(Addressed); is {
		path = locationAt(path, addressed.Address())
		if revised, is := made.(Revised); is {
			stored.Headers["ETag"] = response.ETagOf(revised.CurrentVersion())
		}
	}
	if status != stdhttp.StatusOK {
		stored.Headers["Location"] = path
	}
	var body bytes.Buffer
	err := response.WriteJSON(&body, made)
	stored.Body = body.Bytes()
	return stored, err
}
