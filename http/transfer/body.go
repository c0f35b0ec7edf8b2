package transfer

import (
	"context"
	"errors"
	"io"
	stdhttp "net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"turnstone/http/exchange"
	"turnstone/protocol"
	"turnstone/protocol/timelimit"
)

// readStall is the time that a client has for each readStep bytes of a body. On a slow host computer a test is a slow client too.
var readStall = timelimit.Of(15 * time.Second)

const readStep = 32 << 10

// CheckUncompressed returns an error if the body of a request is compressed by its Content-Encoding.
func CheckUncompressed(r *stdhttp.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return protocol.Errorf(protocol.CodeUnsupportedMedia, "The body must not be compressed by Content-Encoding.")
	}
	return nil
}

// Open returns the body of a request. The caller calls end with the error with which it stops reading; nil: it has read all. After an
// error, the rest of the body is not processed: the connection ends with the response.
func Open(w stdhttp.ResponseWriter, r *stdhttp.Request) (body *Body, end func(error)) {
	body = &Body{from: r.Body, control: stdhttp.NewResponseController(w)}
	return body, func(err error) {
		if err == nil {
			return
		}
		body.Stop()
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // net/http would read the rest of a body before it responds
		}
	}
}

// Receive is Open for a body that may take as long as a transfer: if the session of the caller ends, the body and ctx end. The caller
// defers end with the error that it returns.
func Receive(w stdhttp.ResponseWriter, r *stdhttp.Request, sessions exchange.Sessions) (ctx context.Context, body *Body, end func(err *error)) {
	ctx, cancel := context.WithCancel(r.Context())
	body, endBody := Open(w, r)
	caller := exchange.CallerOf(ctx)
	var ended atomic.Bool // the request's own context also ends when a read fails
	stop := sessions.Watch(caller.AccountID, caller.SessionID, func() {
		ended.Store(true)
		cancel()
		body.Stop()
	})
	return ctx, body, func(err *error) {
		defer cancel()
		defer stop()
		endBody(*err)
		if *err != nil && ended.Load() {
			*err = exchange.ErrSessionEnded()
		}
	}
}

// Body is the body of one request. A client that does not send readStep bytes within readStall, or the rest of the
// body, gets an error. Only the time in which a Read waits counts: between two of them, the stores process what was read.
// Stop may be called from any goroutine.
type Body struct {
	from    io.Reader
	control *stdhttp.ResponseController

	// Owned by Read.
	left int           // bytes until the client gets new time
	rest time.Duration // that the client has for them

	mu       sync.Mutex
	stopped  bool // guarded by mu
	complete bool // guarded by mu: the body was read to its end
}

var errStopped = errors.New("the transfer was stopped")

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.left, b.rest = readStep, readStall
	}
	began := time.Now()
	if !b.setDeadline(began.Add(b.rest)) {
		return 0, errStopped
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	b.rest -= time.Since(began)
	// The deadline is removed between reads: over HTTP/2, one that passes ends the body even if no read waits.
	if b.setDeadline(time.Time{}) && errors.Is(err, io.EOF) {
		b.mu.Lock()
		b.complete = true
		b.mu.Unlock()
	}
	return n, err
}

// Stop ends reads, those that wait included. After the end of the body it does nothing.
func (b *Body) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || b.complete {
		return
	}
	b.stopped = true
	_ = b.control.SetReadDeadline(time.Now()) // the writers of some tests support no deadlines
}

// setDeadline returns false, and sets none, after Stop.
func (b *Body) setDeadline(at time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.stopped {
		_ = b.control.SetReadDeadline(at)
	}
	return !b.stopped
}
