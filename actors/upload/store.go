package upload

import (
	"context"

	"go.uber.org/zap"

	"turnstone/protocol/uploadlog"
)

// store stores a batch in a separate goroutine, and repeats it while the store is unavailable.
func (h *Host) store(batch *uploadlog.Append, done func(error)) {
	h.Store(func(ctx context.Context) error { return h.config.Store.AppendUpload(ctx, batch) }, func(err error) {
		h.log.Warn("a batch of an upload was not stored, will retry", zap.Stringer("upload", batch.UploadID), zap.Error(err))
	}, done)
}
