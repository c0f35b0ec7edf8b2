package upload

import (
	"context"
	"sync"
	"time"

	"turnstone/actors/tail"
	"turnstone/protocol"
)

// watchPoll is the interval at which a watched upload is read again in case another node works on it.
const watchPoll = time.Second

// watchers wakes the readers of uploads. Its zero value is ready to use, except for moved.
type watchers struct {
	moved func() bool // readers must reconnect to another node

	mu      sync.Mutex
	watched map[protocol.UploadID]map[*Reader]struct{} // guarded by mu
}

// changed wakes the readers of an upload.
func (w *watchers) changed(id protocol.UploadID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r := range w.watched[id] {
		r.wake()
	}
}

func (w *watchers) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, readers := range w.watched {
		for r := range readers {
			r.wake()
		}
	}
}

func (w *watchers) add(r *Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watched == nil {
		w.watched = map[protocol.UploadID]map[*Reader]struct{}{}
	}
	if w.watched[r.upload] == nil {
		w.watched[r.upload] = map[*Reader]struct{}{}
	}
	w.watched[r.upload][r] = struct{}{}
}

func (w *watchers) remove(r *Reader) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	delete(w.watched[r.upload], r)
	if len(w.watched[r.upload]) == 0 {
		delete(w.watched, r.upload)
	}
}

// Reader follows the events of one upload from a sequence to its end, whichever node works on it. It implements
// sse.Reader.
//
// Order: that of the sequences. Resume: after any sequence. Loss: none; the events are kept as long as the upload. Slow
// reader: it does not delay others, and reads what it has missed from the store. Close: after upload.finished, or with
// TakenMoved when the node drains. Concurrency: used by one goroutine at a time, which must call Leave once, at the end.
type Reader struct {
	host    *Host
	account protocol.AccountID
	upload  protocol.UploadID
	cursor  int64
	ended   bool

	// Guarded by host.watch.mu.
	unread bool // there may be events after the cursor
	waker  tail.Waker
	timer  *time.Timer // wakes the reader after watchPoll; nil before the first wait
}

// Follow returns a reader of an upload that starts after a sequence. The caller must have checked that the account owns
// the upload.
func (h *Host) Follow(account protocol.AccountID, id protocol.UploadID, after int64) *Reader {
	r := &Reader{host: h, account: account, upload: id, cursor: after, unread: true}
	h.watch.add(r)
	return r
}

// wake notifies the waker once. The caller holds host.watch.mu.
func (r *Reader) wake() {
	r.unread = true
	if r.waker != nil {
		r.waker.Wake()
		r.waker = nil
	}
}

// Take appends no runs: the events of an upload are few, and Next returns them.
func (r *Reader) Take(waker tail.Waker, into []tail.Run) ([]tail.Run, tail.Taken) {
	w := &r.host.watch
	moved := w.moved()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case r.ended:
		return into, tail.TakenEnd
	case r.unread:
		r.unread = false
		return into, tail.TakenNotInMemory
	case moved:
		return into, tail.TakenMoved
	}
	r.waker = waker
	if r.timer == nil {
		r.timer = time.AfterFunc(watchPoll, r.poll)
	} else {
		r.timer.Reset(watchPoll)
	}
	return into, tail.TakenCaughtUp
}

func (r *Reader) poll() {
	r.host.watch.mu.Lock()
	defer r.host.watch.mu.Unlock()
	r.wake()
}

// Next returns the events after the cursor, one per line; none if there are none. It does not wait for more.
func (r *Reader) Next(ctx context.Context, _ <-chan time.Time) (frames []byte, ended bool, err error) {
	frames, last, err := r.host.config.Store.UploadFrames(ctx, r.account, r.upload, r.cursor)
	if err != nil {
		return nil, false, err
	}
	if len(frames) > 0 {
		r.cursor, r.ended = last, protocol.EndsUpload(frames)
	}
	return frames, r.ended, nil
}

// Leave ends the reading: the waker is not notified any more.
func (r *Reader) Leave() { r.host.watch.remove(r) }

// await reads an upload until it is as wanted, at most for a time. It returns the upload as it last was.
func (h *Host) await(
	ctx context.Context, account protocol.AccountID, id protocol.UploadID, atMost time.Duration, wanted func(*protocol.Upload) bool,
) (*protocol.Upload, error) {
	r := h.Follow(account, id, 0)
	defer r.Leave()
	over := time.NewTimer(atMost)
	defer over.Stop()
	signal := make(tail.Signal, 1)
	for {
		_, taken := r.Take(signal, nil)
		if taken != tail.TakenCaughtUp {
			current, err := h.config.Store.Upload(ctx, account, id)
			if err != nil || wanted(current) || taken == tail.TakenMoved {
				return current, err
			}
			continue
		}
		select {
		case <-signal:
		case <-over.C:
			return h.config.Store.Upload(ctx, account, id)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
