package upload

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"turnstone/actors/host"
	"turnstone/protocol"
	"turnstone/protocol/uploadlog"
)

// importWait is how long one wait for the verdict on an imported file takes; then the upload is read again.
const importWait = 30 * time.Second

// ReceiveFile receives a file for a job: it creates the upload of spec, unless an earlier run of the job has created it, receives
// the content, and waits for the end of the upload. open is called at most once, and its content is closed. A content that
// the upload does not accept cancels it; the failure of the returned upload says why. The error is that of Create or of the content, or
// protocol.CodeUnavailable if another attempt may succeed.
func (h *Host) ReceiveFile(ctx context.Context, spec *uploadlog.Spec, open func() (io.ReadCloser, error)) (*protocol.Upload, error) {
	current, err := h.config.Store.Upload(ctx, spec.AccountID, spec.UploadID)
	if protocol.CodeOf(err) == protocol.CodeNotFound {
		current, err = h.Create(ctx, spec)
	}
	if err != nil {
		return nil, err
	}
	if current.State == protocol.UploadPending {
		if current, err = receiveImported(ctx, h, spec, open); err != nil {
			return nil, err
		}
	}
	for !current.State.Terminal() {
		if current.State == protocol.UploadPending { // the node that received it has ended
			return nil, host.ErrGone
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if current, err = h.Upload(ctx, spec.AccountID, spec.UploadID, importWait); err != nil {
			return nil, err
		}
	}
	return current, nil
}

// receiveImported receives the content of an upload that waits for it.
func receiveImported(ctx context.Context, h *Host, spec *uploadlog.Spec, open func() (io.ReadCloser, error)) (*protocol.Upload, error) {
	content, err := open()
	body := &importedBody{from: content, failed: err}
	if err == nil {
		defer func() { _ = content.Close() }() // it is only read
		received, err := h.Receive(ctx, spec.AccountID, spec.UploadID, body)
		switch code := protocol.CodeOf(err); {
		case err == nil:
			return received, nil
		case code == protocol.CodeUnavailable || code == protocol.CodeConflict || ctx.Err() != nil:
			return nil, errors.Join(err, ctx.Err())
		case code != protocol.CodeInvalidBody && code != protocol.CodeTooLarge:
			return nil, err
		}
	}
	if code := protocol.CodeOf(body.failed); body.failed != nil && (code == protocol.CodeUnavailable || ctx.Err() != nil) {
		return nil, body.failed
	}
	return refuseImported(ctx, h, spec)
}

// refuseImported cancels an upload whose content has another size or hash than the archive says, or could not be
// read. The returned upload has the failure.
func refuseImported(ctx context.Context, h *Host, spec *uploadlog.Spec) (*protocol.Upload, error) {
	interrupted, err := h.config.Store.Upload(ctx, spec.AccountID, spec.UploadID)
	if err != nil {
		return nil, err
	}
	ended, err := h.Cancel(ctx, spec.AccountID, spec.UploadID)
	if err != nil {
		return nil, err
	}
	if ended.Failure = interrupted.Failure; ended.Failure == nil {
		ended.Failure = &protocol.UploadFailure{Code: protocol.UploadConnectionLost, Detail: "The content could not be read completely."}
	}
	return ended, nil
}

// importedBody is the content of an imported file. It remembers the error with which reading it has failed.
type importedBody struct {
	from    io.Reader
	failed  error // owned by Read
	stopped atomic.Bool
}

// Read implements io.Reader.
func (b *importedBody) Read(p []byte) (int, error) {
	if b.stopped.Load() {
		return 0, host.ErrGone
	}
	n, err := b.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed = err
	}
	return n, err
}

// Stop implements Body. The content is in an object store, so no read waits for long.
func (b *importedBody) Stop() { b.stopped.Store(true) }
