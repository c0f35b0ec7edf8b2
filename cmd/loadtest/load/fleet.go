package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
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
	refused atomic.Int64 // those of Failed whose request got 503
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
			if errors.Is(err, ErrRefused) {
				f.refused.Add(1)
			}
			f.Failed.Add(1)
			f.Rec.Fail(err)
		}
	})
}

// follow reads a stream to its end.
func (f *Fleet) follow(ctx context.Context, address string, s *Stream) error {
	if err := f.connect(ctx, address, s); err != nil {
		return err
	}
	err := s.Follow()
	_ = s.Conn.Close() // read to its end, or broken
	return err
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
		return f.begun.Load() >= n, f.Check()
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

// ErrRefused reports a request that got 503. A service that carries its load refuses none.
var ErrRefused = errors.New("refused")

// Check returns an error if a stream failed: its request was refused or exceeded a limit, or it broke or has gaps. The
// error is ErrRefused if a request was refused.
func (f *Fleet) Check() error {
	if refused := f.refused.Load(); refused > 0 {
		return fmt.Errorf("%d of %d requests: %w: %s", refused, len(f.Streams), ErrRefused, f.Rec.Sample())
	}
	if failed := f.Failed.Load(); failed > 0 {
		return fmt.Errorf("%d of %d streams failed: %s", failed, len(f.Streams), f.Rec.Sample())
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
