package shares

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"turnstone/persistence/shares"
)

const (
	// OpensInterval is the interval at which WriteOpens has to be called.
	OpensInterval = 30 * time.Second
	opensTimeout  = 10 * time.Second
	maxOpens      = 10_000 // shares that are counted between two writes; the others are not counted
)

// opens counts how often shares were opened since the last write. A share that many people read then costs one write for
// all of them, and a read waits for none.
type opens struct {
	mu     sync.Mutex
	counts map[shares.Ref]openCount // guarded by mu
}

type openCount struct {
	count int64
	at    time.Time // of the last one
}

// add counts the first page of a share.
func (o *opens) add(opened *shares.Opened, at time.Time) {
	if opened.Page == 1 {
		o.merge(opened.Ref, openCount{1, at})
	}
}

func (o *opens) merge(share shares.Ref, more openCount) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.counts == nil {
		o.counts = map[shares.Ref]openCount{}
	}
	known, counted := o.counts[share]
	if !counted && len(o.counts) >= maxOpens {
		return
	}
	if known.at.After(more.at) {
		more.at = known.at
	}
	o.counts[share] = openCount{known.count + more.count, more.at}
}

func (o *opens) take() map[shares.Ref]openCount {
	o.mu.Lock()
	defer o.mu.Unlock()
	taken := o.counts
	o.counts = nil
	return taken
}

// WriteOpens stores the counts of opened shares. A count that cannot be stored is kept for the next write.
func (h *Handlers) WriteOpens(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opensTimeout)
	defer cancel()
	failed := 0
	for share, more := range h.opens.take() {
		if err := h.Store.RecordOpens(ctx, share, more.count, more.at); err != nil {
			if failed++; failed == 1 {
				h.Log.Warn("the counts of opened shares could not be stored", zap.Error(err))
			}
			h.opens.merge(share, more)
		}
	}
}
