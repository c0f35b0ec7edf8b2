package load

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"turnstone/protocol/clock"
)

// Fleet is a group of concurrent streams.
type Fleet struct {
	Rec     *Recorder
	Streams []*Stream
	running sync.WaitGroup
	mu      sync.Mutex   // held to open and close connections
	begun   atomic.Int64 // streams that have read their first token
	closing atomic.Bool  // set by Close: streams that end now did not fail
	ended   atomic.Int64
	Failed  atomic.Int64
	refused atomic.Int64 // requests that were refused with 503 and sent again
	limited atomic.Int64 // requests that exceeded a limit (429), which no measurement intends
}

// Launch starts n streams, evenly over ramp, each on its own connection. request returns the request of stream i.
func Launch(ctx context.Context, address string, n int, ramp time.Duration, rec *Recorder, request func(i int) []byte) (*Fleet, error) {
	f := &Fleet{Rec: rec, Streams: make([]*Stream, n)}
	for i := range n {
		f.Streams[i] = &Stream{N: i, Rec: rec, Request: request(i), onFirst: func() { f.begun.Add(1) }}
	}
	if err := pace(ctx, n, ramp, func(i int) { f.start(ctx, address, f.Streams[i]) }); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Fleet) start(ctx context.Context, address string, s *Stream) {
	f.running.Go(func() {
		err := f.follow(ctx, address, s)
		f.ended.Add(1)
		if err != nil && !f.closing.Load() {
			var response StatusError
			if errors.As(err, &response) && response.status == http.StatusTooManyRequests {
				f.limited.Add(1)
			}
			f.Failed.Add(1)
			f.Rec.Fail(err)
		}
	})
}

const (
	beginTries = 10
	beginPause = time.Second
)

// follow reads a stream to its end. While nothing is measured, a refused request is counted and sent again, as clients
// do: on a slow machine streams may start faster than the service can start their turns, and that is not part of the
// measurement.
func (f *Fleet) follow(ctx context.Context, address string, s *Stream) error {
	for tries := 1; ; tries++ {
		err := f.connect(ctx, address, s)
		if err == nil {
			err = s.Follow()
			_ = s.Conn.Close() // read to its end, or broken
		}
		var response StatusError
		refused := errors.As(err, &response) && response.status == http.StatusServiceUnavailable
		if !refused || tries == beginTries || f.Rec.Open.Load() || clock.Sleep(ctx, beginPause) != nil {
			return err
		}
		f.refused.Add(1)
	}
}

// connect opens the connection of a stream before the stream's time is measured. A stream does not connect earlier than
// necessary, because a server closes connections that send no request.
func (f *Fleet) connect(ctx context.Context, address string, s *Stream) error {
	conn, err := Dial(ctx, address)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing.Load() {
		_ = conn.Close()
		return ErrCut
	}
	s.Conn = conn
	return nil
}

// AwaitFirst waits until every stream has read its first token. A failed stream is an error.
func (f *Fleet) AwaitFirst(ctx context.Context, timeout time.Duration) error {
	n := int64(len(f.Streams))
	err := Until(ctx, timeout, func() (bool, error) {
		if failed := f.Failed.Load(); failed > 0 {
			return false, fmt.Errorf("%d streams failed: %v", failed, f.Rec.Sample())
		}
		return f.begun.Load() >= n, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d streams have a first token: %w", f.begun.Load(), n, err)
	}
	return nil
}

// Await waits until every stream has ended without being closed.
func (f *Fleet) Await(ctx context.Context, timeout time.Duration) error {
	n := int64(len(f.Streams))
	if err := Until(ctx, timeout, func() (bool, error) { return f.ended.Load() >= n, nil }); err != nil {
		return fmt.Errorf("%d of %d streams ended: %w", f.ended.Load(), n, err)
	}
	f.running.Wait()
	return nil
}

// Close closes every connection and waits for the streams to end.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closing.Store(true)
	for _, s := range f.Streams {
		if s.Conn != nil {
			_ = s.Conn.Close()
		}
	}
	f.mu.Unlock()
	f.running.Wait()
}

// maxRefusedShare is the share of a fleet whose requests may be refused before the measurement: on a slow machine
// streams start faster than turns can.
const maxRefusedShare = 0.05

// CheckLimits returns an error if requests of the fleet exceeded a limit, since fewer turns ran than intended.
func (f *Fleet) CheckLimits() error {
	if n := f.limited.Load(); n > 0 {
		return fmt.Errorf("%d of %d requests exceeded a limit (429): %s", n, len(f.Streams), f.Rec.Sample())
	}
	return nil
}

// Check returns an error if requests exceeded a limit, if too many were refused, or if a stream failed.
func (f *Fleet) Check() error {
	if err := f.CheckLimits(); err != nil {
		return err
	}
	if n := f.refused.Load(); float64(n) > 1+maxRefusedShare*float64(len(f.Streams)) {
		return fmt.Errorf("%d requests of %d streams were refused and sent again", n, len(f.Streams))
	}
	if failed := f.Failed.Load(); failed > 0 {
		return errors.New(fmt.Sprint(failed, " streams failed: ", f.Rec.Sample()))
	}
	return nil
}

// Gaps returns the number of events and tokens that did not follow the previous one.
func (f *Fleet) Gaps() (n int) {
	for _, s := range f.Streams {
		n += s.Gaps + s.Tally.Broken
	}
	return n
}
