package upload

import (
	"go.uber.org/zap"

	"turnstone/actors/host"
	"turnstone/actors/retry"
	"turnstone/protocol/uploadlog"
)

// store stores a batch in a separate goroutine, and repeats it while the store is unavailable.
func (h *Host) store(batch *uploadlog.Append, done func(error)) {
	h.GoOr(func() {
		failed := func(err error) {
			h.log.Warn("a batch of an upload was not stored, will retry", zap.Stringer("upload", batch.UploadID), zap.Error(err))
		}
		err := retry.OnStore(h.Context(), retry.Unavailable, failed, func() error { return h.config.Store.AppendUpload(h.Context(), batch) })
		if err != nil && h.Context().Err() != nil {
			err = host.ErrGone
		}
		done(err)
	}, func() { done(host.ErrGone) })
}
