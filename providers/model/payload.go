package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// payload is the body of a request. The transport keeps a request until its response has ended, long after the request
// was sent. payload releases the body, which contains a whole conversation, as soon as it cannot be sent again.
type payload struct {
	mu      sync.Mutex
	getBody func() (io.ReadCloser, error) // guarded by mu; nil once there is a response
}

func newPayload(request *http.Request) *payload { return &payload{getBody: request.GetBody} }

// request returns a copy of request whose body can be released.
func (p *payload) request(ctx context.Context, request *http.Request) *http.Request {
	outgoing := request.WithContext(ctx)
	if request.Body != nil && request.Body != http.NoBody {
		outgoing.Body = &payloadReader{from: request.Body}
	}
	if request.GetBody != nil {
		outgoing.GetBody = p.body
	}
	return outgoing
}

var errBodyReleased = errors.New("the body of the request was released")

// body implements GetBody. The transport calls it to send the request again over another connection.
func (p *payload) body() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.getBody == nil {
		return nil, errBodyReleased
	}
	body, err := p.getBody()
	if err != nil {
		return nil, err
	}
	return &payloadReader{from: body}, nil
}

// release releases the body. The request cannot be sent again afterwards.
func (p *payload) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.getBody = nil
}

// payloadReader releases its source when it is closed. The transport may close it during a read.
type payloadReader struct {
	mu   sync.Mutex
	from io.ReadCloser // guarded by mu; nil once closed
}

func (r *payloadReader) Read(into []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	return r.from.Read(into)
}

func (r *payloadReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.from == nil {
		return nil
	}
	from := r.from
	r.from = nil
	return from.Close()
}
