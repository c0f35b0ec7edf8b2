package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// fleet is many streams at once.
type fleet struct {
	rec     *recorder
	streams []*stream
	running sync.WaitGroup
	mu      sync.Mutex   // for opening and closing connections
	begun   atomic.Int64 // streams whose first token came
	closing atomic.Bool  // what ends now was ended by us
	ended   atomic.Int64
	failed  atomic.Int64
	refused atomic.Int64 // requests that were refused with 503 and sent again
	limited atomic.Int64 // requests that met a limit (429): no load test means to measure that
}

// launch begins n streams, evenly over ramp, each on a connection of its own. request makes the request of one.
func launch(ctx context.Context, address string, n int, ramp time.Duration, rec *recorder, request func(i int) []byte) (*fleet, error) {
	f := &fleet{rec: rec, streams: make([]*stream, n)}
	for i := range n {
		f.streams[i] = &stream{n: i, rec: rec, request: request(i), onFirst: func() { f.begun.Add(1) }}
	}
	if err := pace(ctx, n, ramp, func(i int) { f.start(ctx, address, f.streams[i]) }); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *fleet) start(ctx context.Context, address string, s *stream) {
	f.running.Go(func() {
		err := f.follow(ctx, address, s)
		f.ended.Add(1)
		if err != nil && !f.closing.Load() {
			var answer errStatus
			if errors.As(err, &answer) && answer.status == http.StatusTooManyRequests {
				f.limited.Add(1)
			}
			f.failed.Add(1)
			f.rec.fail(err)
		}
	})
}

const (
	beginTries = 10
	beginPause = time.Second
)

// follow reads a stream to its end. While nothing is measured, a refused request is counted and sent again, as clients do:
// a crowd that gathers faster than a slow machine can start its turns is no part of what is measured of it.
func (f *fleet) follow(ctx context.Context, address string, s *stream) error {
	for tries := 1; ; tries++ {
		err := f.connect(ctx, address, s)
		if err == nil {
			err = s.follow()
			_ = s.conn.Close() // read to its end, or broken
		}
		var answer errStatus
		refused := errors.As(err, &answer) && answer.status == http.StatusServiceUnavailable
		if !refused || tries == beginTries || f.rec.open.Load() || wait(ctx, beginPause) != nil {
			return err
		}
		f.refused.Add(1)
	}
}

// connect opens the connection before the clock of the stream begins. Nothing connects ahead of its time: a server ends
// connections on which no request comes.
func (f *fleet) connect(ctx context.Context, address string, s *stream) error {
	conn, err := dial(ctx, address)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closing.Load() {
		_ = conn.Close()
		return errCut
	}
	s.conn = conn
	return nil
}

// awaitFirst waits until every stream has begun.
func (f *fleet) awaitFirst(ctx context.Context, patience time.Duration) error {
	n := int64(len(f.streams))
	err := until(ctx, patience, func() (bool, error) {
		if failed := f.failed.Load(); failed > 0 {
			return false, fmt.Errorf("%d streams failed: %v", failed, f.rec.sample())
		}
		return f.begun.Load() >= n, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d streams began: %w", f.begun.Load(), n, err)
	}
	return nil
}

// await waits until every stream has ended by itself.
func (f *fleet) await(ctx context.Context, patience time.Duration) error {
	n := int64(len(f.streams))
	if err := until(ctx, patience, func() (bool, error) { return f.ended.Load() >= n, nil }); err != nil {
		return fmt.Errorf("%d of %d streams ended: %w", f.ended.Load(), n, err)
	}
	f.running.Wait()
	return nil
}

// close drops every connection.
func (f *fleet) close() {
	f.mu.Lock()
	f.closing.Store(true)
	for _, s := range f.streams {
		if s.conn != nil {
			_ = s.conn.Close()
		}
	}
	f.mu.Unlock()
	f.running.Wait()
}

// mostRefused is the share of a crowd that may be refused while it gathers: on a slow machine it gathers faster than turns
// can start.
const mostRefused = 0.05

// unlimited returns an error if the fleet met a limit: fewer turns ran than it says.
func (f *fleet) unlimited() error {
	if n := f.limited.Load(); n > 0 {
		return fmt.Errorf("%d of %d requests met a limit (429): %s", n, len(f.streams), f.rec.sample())
	}
	return nil
}

// check returns what went wrong in a fleet that should have had no failure.
func (f *fleet) check() error {
	if err := f.unlimited(); err != nil {
		return err
	}
	if n := f.refused.Load(); float64(n) > 1+mostRefused*float64(len(f.streams)) {
		return fmt.Errorf("%d requests of %d streams were refused and sent again", n, len(f.streams))
	}
	if failed := f.failed.Load(); failed > 0 {
		return errors.New(fmt.Sprint(failed, " streams failed: ", f.rec.sample()))
	}
	return nil
}

// gaps counts events and tokens that did not follow the one before.
func (f *fleet) gaps() (n int) {
	for _, s := range f.streams {
		n += s.gaps + s.tally.broken
	}
	return n
}

// sample is one error that was seen.
func (r *recorder) sample() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for text, n := range r.errors {
		return fmt.Sprintf("%d × %s", n, text)
	}
	return "none"
}
