// Package follow lets readers follow the events of work whose log is short and in the store: uploads and research tasks. The
// readers of turns use package tail's memory instead, because a turn has many events.
//
//	actor ── Changed ──▶ Logs ── wakes ──▶ Reader ── Next ──▶ the store
//
// It knows no kind of work and no actor.
package follow

import (
	"context"
	"sync"
	"time"

	"turnstone/actors/tail"
	"turnstone/protocol"
)

// poll is the interval at which a followed log is read again in case another node writes it.
const poll = time.Second

// Logs are the logs of one kind of work, and their readers. The fields are set before it is used. Its methods may be called
// from any goroutine.
type Logs[ID comparable] struct {
	// Frames reads the events after a sequence, one per line. last is the sequence of the last of them. The error is
	// protocol.CodeNotFound if the log was deleted.
	Frames func(ctx context.Context, account protocol.AccountID, id ID, after int64) (frames []byte, last int64, err error)
	Ends   func(frames []byte) bool // whether the last of the frames is the last event of its log
	Moved  func() bool              // whether readers must reconnect to another node

	mu      sync.Mutex
	watched map[ID]map[*Reader[ID]]struct{} // guarded by mu
}

// Changed wakes the readers of a log.
func (l *Logs[ID]) Changed(id ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for r := range l.watched[id] {
		r.wake()
	}
}

// WakeAll wakes every reader.
func (l *Logs[ID]) WakeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, readers := range l.watched {
		for r := range readers {
			r.wake()
		}
	}
}

// Reader follows the events of one log to its end, whichever node writes it. It implements sse.Reader.
//
// Order: that of the sequences. Resume: after any sequence. Loss: none; the events are kept as long as their work. Slow
// reader: it does not delay others, and reads what it has missed from the store. Close: after the last event, or with
// TakenMoved when the node drains. Concurrency: used by one goroutine at a time, which must call Leave once, at the end.
type Reader[ID comparable] struct {
	logs    *Logs[ID]
	account protocol.AccountID
	id      ID
	cursor  int64
	ended   bool

	// Guarded by logs.mu.
	unread bool // there may be events after the cursor
	waker  tail.Waker
	timer  *time.Timer // wakes the reader after poll; nil before the first wait
}

// Follow returns a reader of a log that starts after a sequence. The caller must have checked that the account owns it.
func (l *Logs[ID]) Follow(account protocol.AccountID, id ID, after int64) *Reader[ID] {
	r := &Reader[ID]{logs: l, account: account, id: id, cursor: after, unread: true}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.watched == nil {
		l.watched = map[ID]map[*Reader[ID]]struct{}{}
	}
	if l.watched[id] == nil {
		l.watched[id] = map[*Reader[ID]]struct{}{}
	}
	l.watched[id][r] = struct{}{}
	return r
}

// Leave ends the reading: the waker is not notified any more.
func (r *Reader[ID]) Leave() {
	l := r.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	delete(l.watched[r.id], r)
	if len(l.watched[r.id]) == 0 {
		delete(l.watched, r.id)
	}
}

// wake notifies the waker once. The caller holds logs.mu.
func (r *Reader[ID]) wake() {
	r.unread = true
	if r.waker != nil {
		r.waker.Wake()
		r.waker = nil
	}
}

// Take appends no runs: the events are few, and Next returns them.
func (r *Reader[ID]) Take(waker tail.Waker, into []tail.Run) ([]tail.Run, tail.Taken) {
	moved := r.logs.Moved()
	r.logs.mu.Lock()
	defer r.logs.mu.Unlock()
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
		r.timer = time.AfterFunc(poll, r.wakeAfterPoll)
	} else {
		r.timer.Reset(poll)
	}
	return into, tail.TakenCaughtUp
}

func (r *Reader[ID]) wakeAfterPoll() {
	r.logs.mu.Lock()
	defer r.logs.mu.Unlock()
	r.wake()
}

// Next returns the events after the cursor, one per line; tail.ErrNone if there are none. It does not wait for more. A log that was
// deleted has ended.
func (r *Reader[ID]) Next(ctx context.Context, _ <-chan time.Time) (frames []byte, ended bool, err error) {
	frames, last, err := r.logs.Frames(ctx, r.account, r.id, r.cursor)
	switch {
	case protocol.CodeOf(err) == protocol.CodeNotFound:
		r.ended = true
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case len(frames) == 0:
		return nil, r.ended, tail.ErrNone
	}
	r.cursor, r.ended = last, r.logs.Ends(frames)
	r.logs.mu.Lock()
	defer r.logs.mu.Unlock()
	r.unread = true // the store returns a long log in parts
	return frames, r.ended, nil
}

// Await calls read whenever the log may have changed, until it reports that it is done, at most for a time. The last call
// counts, whatever it reports.
func (l *Logs[ID]) Await(ctx context.Context, account protocol.AccountID, id ID, atMost time.Duration, read func() (done bool, err error)) error {
	r := l.Follow(account, id, 0)
	defer r.Leave()
	over := time.NewTimer(atMost)
	defer over.Stop()
	signal := make(tail.Signal, 1)
	for {
		_, taken := r.Take(signal, nil)
		if taken != tail.TakenCaughtUp {
			if done, err := read(); err != nil || done || taken == tail.TakenMoved {
				return err
			}
			continue
		}
		select {
		case <-signal:
		case <-over.C:
			_, err := read()
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
