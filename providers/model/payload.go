package model

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// payload is the body of a request. The transport holds a request until its answer has ended, which is long after it was
// sent; what is in the body, a whole conversation, is let go of as soon as nobody sends it again.
type payload struct {
	mu    sync.Mutex
	again func() (io.ReadCloser, error) // guarded by mu; nil once there is an answer
}

func newPayload(request *http.Request) *payload { return &payload{again: request.GetBody} }

// request is the same request, which holds nothing of its sender but its head.
func (p *payload) request(ctx context.Context, request *http.Request) *http.Request {
	lean := request.WithContext(ctx)
	if request.Body != nil && request.Body != http.NoBody {
		lean.Body = &payloadReader{from: request.Body}
	}
	if request.GetBody != nil {
		lean.GetBody = p.body
	}
	return lean
}

var errLetGo = errors.New("the request's body was let go of")

// body is what the transport takes to send the request once more, over another connection.
func (p *payload) body() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.again == nil {
		return nil, errLetGo
	}
	body, err := p.again()
	if err != nil {
		return nil, err
	}
	return &payloadReader{from: body}, nil
}

func (p *payload) letGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = nil
}

// payloadReader lets go of its source when it is closed, which the transport may do while it reads.
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
