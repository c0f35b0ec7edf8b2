package upload

import (
	"go.uber.org/zap"

	"turnstone/protocol"
	"turnstone/protocol/clock"
	"turnstone/protocol/uploadlog"
)

// store stores a batch in a separate goroutine, and repeats it while the store is unavailable.
func (h *Host) store(batch *uploadlog.Append, done func(error)) {
	h.GoOr(func() {
		for pause := storePause; ; pause = min(2*pause, maxPause) {
			err := h.config.Store.AppendUpload(h.Context(), batch)
			if protocol.CodeOf(err) != protocol.CodeUnavailable {
				done(err)
				return
			}
			h.log.Warn("a batch of an upload was not stored, will retry", zap.Stringer("upload", batch.UploadID), zap.Error(err))
			if stopped := clock.Sleep(h.Context(), pause); stopped != nil {
				done(errGone)
				return
			}
		}
	}, func() { done(errGone) })
}
