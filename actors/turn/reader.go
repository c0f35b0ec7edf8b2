package turn

import (
	"context"
	"errors"
	"time"

	"turnstone/actors/cluster"
	"turnstone/actors/tail"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// logPage is the number of bytes of a log that are read from Postgres at a time, for readers that are behind the tail.
const logPage = 256 << 10

// Reader follows one turn from a sequence to its end, whichever node runs the turn. It implements sse.Reader.
//
// Order: that of the sequences, without gaps. Resume: after any sequence. Loss: none; what the memory has no longer is read
// from the durable log. Slow reader: it does not delay the turn or other readers. Close: after the last event, or with
// tail.TakenMoved, or tail.ErrMoved of Next, when the node drains or stops. Concurrency: used by one goroutine at a time, which must
// call Leave once, at the end.
type Reader struct {
	host     *Host
	account  protocol.AccountID
	turn     protocol.TurnID
	cursor   tail.Cursor
	caughtUp bool           // the reader had caught up with the log at the last lookup
	stream   *tail.Stream   // the last stream that was read; nil before
	relay    *cluster.Relay // the relay that publishes stream; nil if a turn of this node does
	signal   tail.Signal    // of Next; nil before its first call
}

// Take appends the events that follow the cursor and are in memory, without waiting. When there are none, the result
// gives the reason. For TakenCaughtUp, the waker is notified once when that changes.
func (r *Reader) Take(waker tail.Waker, into []tail.Run) ([]tail.Run, tail.Taken) {
	if r.cursor.Ended {
		return into, tail.TakenEnd
	}
	if r.stream != nil {
		runs, taken := r.stream.Take(&r.cursor, waker, into)
		switch {
		case taken == tail.TakenCaughtUp && r.relay == nil && r.host.isolated.Load():
			return runs, tail.TakenMoved
		case taken != tail.TakenNotInMemory:
			return runs, taken
		}
	}
	running := r.host.Find(r.account, r.turn)
	if running == nil {
		if r.host.Draining() {
			return into, tail.TakenMoved
		}
		return into, tail.TakenNotInMemory
	}
	if running.Work.stream == r.stream {
		return into, tail.TakenNotInMemory
	}
	r.leaveRelay()
	r.stream = running.Work.stream
	return r.Take(waker, into)
}

// Leave ends the reading: the waker is not notified any more.
func (r *Reader) Leave() {
	if r.stream == nil {
		return
	}
	r.stream.Leave(&r.cursor)
	r.leaveRelay()
}

func (r *Reader) leaveRelay() {
	if r.relay != nil {
		r.host.peers.hub.Leave(r.relay)
		r.relay = nil
	}
}

// followRelay makes the reader read a relay of a turn that runs on another node, if there can be one.
func (r *Reader) followRelay(head *turnlog.Head) bool {
	next := r.host.peers.follow(r.account, r.turn, head)
	if next == nil {
		return false
	}
	r.Leave()
	r.relay, r.stream, r.caughtUp = next, next.Stream(), false
	return true
}

// FollowsLocally reports whether the turn runs on this node, belongs to the reader's account, and has reached the
// cursor: the caller can then follow it without a lookup in the store. When it returns false, the caller must look the
// turn up.
func (r *Reader) FollowsLocally() bool {
	running := r.host.Find(r.account, r.turn)
	if running == nil || running.Work.deleting.Load() || !r.host.node.LeaseIsValid() {
		return false
	}
	return running.Work.stream.Follows(r.cursor.After)
}

// Next waits for events after the cursor and returns them, one per line, and whether the last of them ends the turn.
// When beat fires first, it returns no frames, so that the caller can send a heartbeat. It returns ctx's error when ctx
// is done, and tail.ErrMoved when the client should reconnect. After the end it returns no frames and true.
func (r *Reader) Next(ctx context.Context, beat <-chan time.Time) (frames []byte, ended bool, err error) {
	if r.signal == nil {
		r.signal = make(tail.Signal, 1)
	}
	for {
		runs, taken := r.Take(r.signal, nil)
		if len(runs) > 0 {
			return tail.Joined(runs), r.cursor.Ended, nil
		}
		switch taken {
		case tail.TakenEnd:
			return nil, true, nil
		case tail.TakenMoved:
			return nil, false, tail.ErrMoved
		case tail.TakenNotInMemory:
			frames, err = r.fromLog(ctx, beat)
		case tail.TakenCaughtUp, tail.TakenSome:
			err = wait(ctx, r, beat)
		}
		if err != nil || len(frames) > 0 {
			if errors.Is(err, errBeat) {
				err = nil
			}
			return frames, r.cursor.Ended, err
		}
	}
}

var errBeat = errors.New("the heartbeat came first")

// Cursor returns the sequence of the last event that was returned.
func (r *Reader) Cursor() int64 { return r.cursor.After }

// The intervals at which a reader polls the end of a log that this node does not write: tailPoll while another running
// node owns the turn and no relay is possible, orphanPoll while no running node does. A reader is also woken when the turn starts to run on this node. orphanPoll
// is long because after a crash all readers of the node poll until the turns have an owner.
const (
	tailPoll   = 250 * time.Millisecond
	orphanPoll = time.Second
	parkedPoll = 10 * time.Second // while the turn waits for an approval; the node that continues it announces that
)

// fromLog reads the durable log. At the current end of the log it waits.
func (r *Reader) fromLog(ctx context.Context, beat <-chan time.Time) ([]byte, error) {
	if !r.caughtUp {
		frames, last, err := r.host.turnLog.TurnFrames(ctx, r.account, r.turn, r.cursor.After, logPage)
		if err != nil {
			return nil, err
		}
		if len(frames) > 0 {
			r.cursor.After, r.cursor.Ended = last, protocol.EndsTurn(frames)
			return frames, nil
		}
	}
	head, elsewhere, err := r.host.locateOwner(ctx, r.account, r.turn)
	if err != nil {
		return nil, err
	}
	if r.caughtUp = head.LastSequence <= r.cursor.After; !r.caughtUp {
		return nil, nil
	}
	if head.State.Terminal() {
		r.cursor.Ended = true
		return nil, nil
	}
	pause := orphanPoll
	if head.Parked {
		pause = parkedPoll
	}
	if elsewhere {
		if r.followRelay(&head) {
			return nil, nil
		}
		pause = tailPoll
	}
	if !r.host.await(r.account, r.turn, r.stream, r.signal) {
		return nil, nil
	}
	defer r.host.waiting.remove(r.turn, r.signal)
	timer := time.AfterFunc(pause, r.signal.Wake)
	defer timer.Stop()
	return nil, wait(ctx, r, beat)
}

// wait waits until the reader is signalled. It returns errBeat when beat fires first, tail.ErrMoved when the node stops, and
// ctx's error when ctx is done.
func wait(ctx context.Context, r *Reader, beat <-chan time.Time) error {
	select {
	case <-r.signal:
		return nil
	case <-beat:
		return errBeat
	case <-r.host.Context().Done():
		return tail.ErrMoved
	case <-ctx.Done():
		return ctx.Err()
	}
}
