package transfer

import (
	"context"
	"errors"
	stdhttp "net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/http/exchange"
	"turnstone/protocol"
)

// writeStall is the time in which a reader must accept each write of at most 64 KiB. Otherwise the download is aborted.
const writeStall = 30 * time.Second

// Grant permits a download while it lasts.
type Grant interface {
	// Watch calls end when the grant ends, until stop is called. end must not block.
	Watch(end func()) (stop func())
	// Ended returns the error of a request whose grant ended before the response began.
	Ended() error
}

// OfSession returns the grant of the session of a request.
func OfSession(r *stdhttp.Request, sessions exchange.Sessions) Grant {
	caller := exchange.CallerOf(r.Context())
	return session{sessions, caller.AccountID, caller.SessionID}
}

type session struct {
	sessions  exchange.Sessions
	accountID protocol.AccountID
	sessionID protocol.SessionID
}

// Watch implements Grant.
func (s session) Watch(end func()) (stop func()) {
	return s.sessions.Watch(s.accountID, s.sessionID, end)
}

// Ended implements Grant.
func (session) Ended() error { return exchange.ErrSessionEnded() }

// errHeadOnly ends the creation of a body that the client has not asked for.
var errHeadOnly = errors.New("the response to HEAD has no body")

// Download is the body of one response that is written while it is created.
type Download struct {
	head    bool // only the header is sent
	to      stdhttp.ResponseWriter
	control *stdhttp.ResponseController
	cancel  context.CancelFunc

	mu      sync.Mutex
	started bool // guarded by mu
	ended   bool // guarded by mu; the grant has ended
}

// WriteHeader sends the header with a status other than 200.
func (d *Download) WriteHeader(status int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.started = true
	d.to.WriteHeader(status)
}

// Headers ends the response to HEAD before anything is created.
func (d *Download) Headers() error {
	_, err := d.Write(nil)
	return err
}

// Write implements io.Writer.
func (d *Download) Write(content []byte) (int, error) {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return 0, context.Canceled
	}
	if d.head {
		if !d.started {
			d.to.WriteHeader(stdhttp.StatusOK)
		}
		d.started = true
		d.mu.Unlock()
		return 0, errHeadOnly
	}
	d.started = true
	_ = d.control.SetWriteDeadline(time.Now().Add(writeStall)) // the writers of some tests support no deadlines
	d.mu.Unlock()
	return d.to.Write(content)
}

// grantEnded ends the download, also while it waits for a slow reader.
func (d *Download) grantEnded() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.cancel()
	_ = d.control.SetWriteDeadline(time.Unix(1, 0))
}

// Send responds with what write writes. name and media type are those of the file. If the grant ends, or if a
// write is not accepted in time, the connection is closed before the end of the body, so that the client does
// not take what it has for the whole file. The response to HEAD ends at the first write.
func Send(w stdhttp.ResponseWriter, r *stdhttp.Request, grant Grant, log *zap.Logger, disposition, media string,
	write func(ctx context.Context, to *Download) error,
) error {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	d := &Download{head: r.Method == stdhttp.MethodHead, to: w, control: stdhttp.NewResponseController(w), cancel: cancel}
	defer grant.Watch(d.grantEnded)()
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Disposition", disposition)
	err := write(ctx, d)
	if err == nil || d.head && d.started {
		_ = d.control.SetWriteDeadline(time.Time{}) // the connection serves other requests
		return nil
	}
	switch {
	case d.started:
	case d.isEnded():
		err = grant.Ended()
		fallthrough
	default:
		for _, name := range []string{"Content-Disposition", "Content-Length", "Content-Range", "Accept-Ranges", "ETag", "Last-Modified"} { // of the file
			w.Header().Del(name)
		}
		return err
	}
	if ctx.Err() == nil {
		log.Info("a download was aborted", zap.String("request_id", exchange.RequestIDOf(ctx)), zap.Error(err))
	}
	panic(stdhttp.ErrAbortHandler)
}

func (d *Download) isEnded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}
