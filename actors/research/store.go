package research

import (
	"context"
	"time"

	"go.uber.org/zap"

	"turnstone/actors/research/machine"
	"turnstone/protocol"
	"turnstone/protocol/researchlog"
)

// encode returns a batch for the store.
func (h *Host) encode(b *machine.Batch, epoch int32) (*researchlog.Append, error) {
	batch := b.Append()
	batch.Owner, batch.Epoch, batch.At = h.config.Node.ID, epoch, time.Now()
	if batch.Task.State.Terminal() {
		batch.Task.FinishedAt = &batch.At
	}
	frames, err := protocol.AppendResearchEvents(nil, batch.TaskID, batch.First, batch.At, b.Events)
	batch.Frames = frames
	return batch, err
}

// shown makes a stored batch visible to readers.
func (h *Host) shown(batch *researchlog.Append) {
	h.logs.Changed(batch.TaskID)
	h.log.Info("research stored", zap.Stringer("task", batch.TaskID), zap.String("state", string(batch.Task.State)),
		zap.String("phase", string(batch.Task.Phase)), zap.Int64("sequence", batch.Last))
	if batch.Task.State.Terminal() {
		h.entered(batch.Task.State)
	}
}

// store stores a batch in a separate goroutine, and repeats it while the store is unavailable.
func (h *Host) store(batch *researchlog.Append, done func(error)) {
	h.Store(func(ctx context.Context) error { return h.config.Store.Append(ctx, batch) }, h.unavailable, done)
}

// unavailable logs the first failure of an outage of the store.
func (h *Host) unavailable(err error) {
	h.log.Warn("the store of research tasks is unavailable, will retry", zap.Error(err))
}

func (h *Host) entered(state protocol.ResearchState) {
	if h.config.Entered != nil {
		h.config.Entered(state)
	}
}
