// Package retry repeats operations of durable work that may succeed later, with growing pauses. It has no limit of its own: the
// caller judges every error, and a context ends the repetition. Requests of clients are not repeated.
package retry

import (
	"context"
	"time"

	"turnstone/protocol"
	"turnstone/protocol/clock"
)

// The pauses between two tries of an operation on a store.
const (
	storePause    = 50 * time.Millisecond
	maxStorePause = time.Second
)

// Verdict says what follows a try.
type Verdict uint8

// The verdicts.
const (
	Stop  Verdict = iota // the error of the try is the result
	Again                // the operation is repeated after a failure
	Wait                 // the operation is repeated; it has not failed
)

// Unavailable judges an operation on a store that only an outage of the store repeats.
func Unavailable(err error) Verdict {
	if protocol.CodeOf(err) == protocol.CodeUnavailable {
		return Again
	}
	return Stop
}

// OnStore runs an operation on a store until judge stops it, and returns the error of its last try. If ctx ends during a pause,
// it returns ctx's error instead. The first pause is 50 ms, the longest 1 s. judge gets the result of every try, also nil. failed
// logs the first failure that is repeated, so that an outage takes one line, however long it lasts.
func OnStore(ctx context.Context, judge func(error) Verdict, failed func(error), try func() error) error {
	pauses := Pauses{First: storePause, Longest: maxStorePause}
	logged := false
	for {
		err := try()
		switch judge(err) {
		case Stop:
			return err
		case Again:
			if !logged {
				logged = true
				failed(err)
			}
		case Wait:
		}
		if stopped := pauses.Sleep(ctx, 0); stopped != nil {
			return stopped
		}
	}
}

// Pauses are the pauses between the tries of one operation. The first is First; each one is twice as long as the one before, up to
// Longest.
type Pauses struct {
	First, Longest time.Duration

	next time.Duration // 0: First
}

// Sleep takes the next pause, which lasts at least for a time. If ctx ends first, it returns ctx's error.
func (p *Pauses) Sleep(ctx context.Context, atLeast time.Duration) error {
	pause := max(p.next, p.First)
	p.next = min(2*pause, p.Longest)
	return clock.Sleep(ctx, max(pause, atLeast))
}
