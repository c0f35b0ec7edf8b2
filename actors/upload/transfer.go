package upload

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/host"
	"turnstone/protocol"
	"turnstone/protocol/failpoint"
	"turnstone/protocol/uploadlog"
)

const (
	progressInterval = time.Second
	discardTimeout   = 5 * time.Second
	toEnd            = int64(-1) // of Objects.Get
)

// quarantineKey returns the key of the content that an attempt receives. Each epoch has a key of its own.
func quarantineKey(spec *uploadlog.Spec, epoch int32) string {
	return uploadlog.QuarantinePrefix(spec.AccountID, spec.ObjectName) + strconv.Itoa(int(epoch))
}

// publishedKey returns the key of the content of an upload's file.
func publishedKey(spec *uploadlog.Spec) string {
	return uploadlog.ObjectKey(spec.AccountID, spec.ObjectName)
}

// transfer receives the body of one request.
type transfer struct {
	// Set by newTransfer.
	body   Body
	read   chan struct{} // closed when the body is not read any more
	result chan error    // gets one outcome

	closeRead sync.Once

	// Owned by the Receive of the upload's actor.
	started bool

	// Guarded by mu.
	mu    sync.Mutex
	cause *protocol.UploadFailure // why the service has ended the transfer; nil: it has not
}

func newTransfer(body Body) *transfer {
	return &transfer{body: body, read: make(chan struct{}), result: make(chan error, 1)}
}

func (r *transfer) finishReading() { r.closeRead.Do(func() { close(r.read) }) }

// settle returns the function that reports the outcome to the request, once it is stored.
func (r *transfer) settle(reason error) func(error) {
	return func(err error) {
		if err != nil {
			reason = host.ErrGone
		}
		r.reply(reason)
	}
}

// refuse is settle for a transfer that is over, or does not start.
func (r *transfer) refuse(reason error) func(error) {
	if !r.started {
		r.finishReading()
	}
	return func(error) { r.reply(reason) }
}

func (r *transfer) reply(reason error) {
	select {
	case r.result <- reason:
	default: // it has an outcome already
	}
}

// wait waits for the outcome, and for the end of the reading. done is closed when the upload's actor has stopped.
func (r *transfer) wait(done <-chan struct{}) (err error) {
	select {
	case err = <-r.result:
	case <-done:
		r.reply(host.ErrGone)
		err = <-r.result
	}
	<-r.read
	return err
}

// interrupt ends the transfer for a cause on the side of the service.
func (r *transfer) interrupt(cause *protocol.UploadFailure) {
	r.mu.Lock()
	r.cause = cause
	r.mu.Unlock()
	r.body.Stop()
}

// abort ends the transfer.
func (r *transfer) abort() { r.body.Stop() }

// run reads the body once, into the object store and the malware scanner, and posts the content or the reason of the
// interruption, and then the verdict.
func (r *transfer) run(ctx context.Context, h *Host, spec *uploadlog.Spec, epoch int32, post func(any)) {
	defer r.finishReading()
	from := &meter{from: &paced{ctx, r.body, h.pace, h.config.Live}, size: spec.Size, post: post}
	pipe, feed := io.Pipe()
	verdict := make(chan scanned, 1)
	go func() {
		v, err := h.scanReceived(ctx, pipe, spec.Size)
		_ = pipe.CloseWithError(errScanOver) // the rest of the body is stored without it
		verdict <- scanned{v, err}
	}()
	content := &uploadlog.Content{Key: quarantineKey(spec, epoch), Size: spec.Size}
	var err error
	content.SHA256, err = h.config.Objects.Put(ctx, content.Key, io.TeeReader(from, scanWriter{feed}), spec.Size)
	if err == nil {
		err = failpoint.Before(failpoint.UploadAfterObject)
	}
	_ = feed.CloseWithError(err) // nil: the end of the content
	r.finishReading()
	if failure, reason := r.interruption(from, spec, content, err); failure != nil {
		<-verdict
		h.discard(ctx, content.Key)
		post(interrupted{failure, reason})
		return
	}
	mediaType, mismatch := h.config.Detector.Detect(from.head, spec.Filename, spec.MediaType)
	content.MediaType = mediaType
	post(received{content, mismatch})
	if err := failpoint.After(failpoint.UploadAfterObject, nil); err != nil {
		post(interrupted{&protocol.UploadFailure{Code: protocol.UploadStoreUnavailable}, err})
	}
	postVerdict(post, <-verdict)
}

// discard deletes what an interrupted attempt may have stored. If that fails, the end of the upload does it.
func (h *Host) discard(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if err := h.config.Objects.Delete(ctx, key); err != nil {
		h.log.Warn("an incomplete content was not deleted yet", zap.Error(err))
	}
}

// errScanLater is the result of a scan without a slot. The content is scanned when it is in quarantine.
var errScanLater = protocol.Errorf(protocol.CodeUnavailable, "%d contents are scanned while they are received", maxReceivedScans)

// scanReceived scans a content while it is received, if there is a slot.
func (h *Host) scanReceived(ctx context.Context, body io.Reader, size int64) (protocol.ScanVerdict, error) {
	select {
	case h.receivedScans <- struct{}{}:
		defer func() { <-h.receivedScans }()
		return h.config.Scanner.Scan(ctx, body, size)
	default:
		return protocol.ScanVerdict{}, errScanLater
	}
}

// errScanOver ends the copy of a body for a scanner that has given up.
var errScanOver = errors.New("the malware scanner has ended")

func postVerdict(post func(any), result scanned) {
	if err := failpoint.Before(failpoint.ScanAfterVerdict); err != nil {
		result.err = err
	}
	post(result)
	if err := failpoint.After(failpoint.ScanAfterVerdict, nil); err != nil {
		post(scanned{err: err})
	}
}

// interruption returns why the content was not received; nil if it was. reason is the error for the request.
func (r *transfer) interruption(from *meter, spec *uploadlog.Spec, content *uploadlog.Content, err error) (failure *protocol.UploadFailure, reason error) {
	r.mu.Lock()
	cause := r.cause
	r.mu.Unlock()
	wrong := func(code protocol.UploadFailureCode, as protocol.Code, detail string) (*protocol.UploadFailure, error) {
		return &protocol.UploadFailure{Code: code, Detail: detail}, &protocol.Error{Code: as, Detail: detail, Err: err}
	}
	switch {
	case err == nil && spec.SHA256 != nil && string(spec.SHA256) != string(content.SHA256[:]):
		return wrong(protocol.UploadHashMismatch, protocol.CodeInvalidBody, "The content has a different SHA-256 from the one that the upload declares.")
	case err == nil:
		return nil, nil
	case cause != nil:
		return cause, &protocol.Error{Code: protocol.CodeUnavailable, Detail: cause.Detail, RetryAfter: 1}
	case errors.Is(err, errTooLong):
		return wrong(protocol.UploadSizeMismatch, protocol.CodeTooLarge, fmt.Sprintf("The content is larger than the %d bytes that the upload declares.", spec.Size))
	case from.failed != nil:
		return wrong(protocol.UploadConnectionLost, protocol.CodeInvalidBody, "The content could not be read completely.")
	case from.ended && from.count < spec.Size:
		return wrong(protocol.UploadSizeMismatch, protocol.CodeInvalidBody, fmt.Sprintf("The content has %d bytes, but the upload declares %d.", from.count, spec.Size))
	}
	return wrong(protocol.UploadStoreUnavailable, protocol.CodeUnavailable, "The file could not be stored. Upload it again.")
}

var errTooLong = errors.New("the body is longer than declared")

// meter reads a body: it counts the bytes, keeps the first of them for the detection of the type, and posts the progress.
type meter struct {
	from   io.Reader
	size   int64
	post   func(any)
	count  int64
	head   []byte
	shown  time.Time
	ended  bool  // the body was read to its end
	failed error // of the body
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	if m.count+int64(n) > m.size {
		m.failed = errTooLong
		return 0, errTooLong
	}
	m.count += int64(n)
	if missing := HeadBytes - len(m.head); missing > 0 {
		m.head = append(m.head, p[:min(n, missing)]...)
	}
	switch {
	case errors.Is(err, io.EOF):
		m.ended = true
	case err != nil:
		m.failed = err
	}
	if now := time.Now(); now.Sub(m.shown) >= progressInterval {
		if !m.shown.IsZero() {
			m.post(progressed{m.count})
		}
		m.shown = now
	}
	return n, err
}

// scanWriter passes the bytes to the malware scanner while it takes them.
type scanWriter struct{ to io.Writer }

// Write implements io.Writer. It never fails.
func (f scanWriter) Write(p []byte) (int, error) {
	_, _ = f.to.Write(p) // after an error, the scanner gives no verdict
	return len(p), nil
}

// scanStored scans a content in quarantine, checks that it is still what was received, and posts the verdict.
func (h *Host) scanStored(ctx context.Context, content *uploadlog.Content, post func(any)) {
	verdict, err := h.scan(ctx, content)
	postVerdict(post, scanned{verdict, err})
}

func (h *Host) scan(ctx context.Context, content *uploadlog.Content) (protocol.ScanVerdict, error) {
	select {
	case h.storedScans <- struct{}{}:
		defer func() { <-h.storedScans }()
	case <-ctx.Done():
		return protocol.ScanVerdict{}, ctx.Err()
	}
	stored, err := h.config.Objects.Get(ctx, content.Key, 0, toEnd)
	if err != nil {
		return protocol.ScanVerdict{}, err
	}
	defer func() { _ = stored.Close() }() // it was only read
	hash := sha256.New()
	verdict, err := h.config.Scanner.Scan(ctx, io.TeeReader(stored, hash), content.Size)
	if err == nil && [32]byte(hash.Sum(nil)) != content.SHA256 {
		err = protocol.Errorf(protocol.CodeNotFound, "the content in quarantine has changed")
	}
	return verdict, err
}

// publish copies a clean content to its final key, unless it is encrypted, and posts the outcome. It can be repeated.
func (h *Host) publish(ctx context.Context, content *uploadlog.Content, to string, post func(any)) {
	isEncrypted, err := h.config.Inspector.Encrypted(ctx, func() (io.ReadCloser, error) { return h.config.Objects.Get(ctx, content.Key, 0, toEnd) }, content.MediaType)
	if err == nil && isEncrypted {
		post(encrypted{})
		return
	}
	if err == nil {
		err = h.config.Objects.Copy(ctx, content.Key, to)
	}
	if err == nil {
		err = failpoint.Before(failpoint.PublishAfterObject)
	}
	post(published{err})
	if err := failpoint.After(failpoint.PublishAfterObject, nil); err != nil {
		post(published{err})
	}
}
