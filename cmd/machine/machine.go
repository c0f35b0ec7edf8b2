// Package machine measures the machine while a time limit is being checked, so that the check can tell a slow program
// from a machine without a free processor. It must not import any other package of this module, because tests of every
// folder and the load test use it.
package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// The bounds within which a machine is fast enough to check a time limit. On an idle machine both measurements are
// below 2 ms. Refusing a request takes several such steps, and the shortest limit leaves 100 ms for all of them.
const (
	MostDelay     = 10 * time.Millisecond // from the time at which a sleeping thread was due until it ran
	MostRoundTrip = 10 * time.Millisecond // of an idle HTTP request on loopback
)

const (
	delayInterval     = 5 * time.Millisecond
	roundTripInterval = 25 * time.Millisecond
	roundTripTimeout  = 10 * time.Second
	ringSize          = 16_384 // of each kind: more than a minute
)

// sample is one measurement and the time that it covers.
type sample struct {
	from, until time.Time
	took        time.Duration
}

// Meter samples the machine until it is stopped.
//
// Concurrency: its methods may be called from any goroutine.
type Meter struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu         sync.Mutex
	delays     []sample // guarded by mu; a ring of ringSize
	roundTrips []sample // guarded by mu; a ring of ringSize
	next       [2]int   // guarded by mu: next position in each ring

	sleeping, requesting time.Time // guarded by mu: since when a sleeping thread is due and since when a request is in flight; zero: none
}

// Start returns a running meter; Stop stops it.
func Start() *Meter {
	ctx, cancel := context.WithCancel(context.Background())
	m := &Meter{cancel: cancel}
	m.running.Go(func() { m.sampleDelays(ctx) })
	m.running.Go(func() { m.sampleRoundTrips(ctx) })
	return m
}

// Stop stops the sampling. The samples can still be read.
func (m *Meter) Stop() {
	m.cancel()
	m.running.Wait()
	m.pending(&m.sleeping, time.Time{})
	m.pending(&m.requesting, time.Time{})
}

func (m *Meter) record(kind int, ring *[]sample, s sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kind == 1 {
		m.requesting = time.Time{}
	}
	if len(*ring) < ringSize {
		*ring = append(*ring, s)
		return
	}
	(*ring)[m.next[kind]] = s
	m.next[kind] = (m.next[kind] + 1) % ringSize
}

func (m *Meter) sampleDelays(ctx context.Context) {
	timer := time.NewTimer(delayInterval)
	defer timer.Stop()
	for due := time.Now().Add(delayInterval); ; due = time.Now().Add(delayInterval) {
		m.pending(&m.sleeping, due)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		m.record(0, &m.delays, sample{due, now, now.Sub(due)})
		timer.Reset(delayInterval)
	}
}

func (m *Meter) pending(which *time.Time, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*which = since
}

// sampleRoundTrips measures requests to an HTTP server that does nothing.
func (m *Meter) sampleRoundTrips(ctx context.Context) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return // without samples no round trip is out of bounds
	}
	server := &http.Server{ReadHeaderTimeout: roundTripTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})}
	m.running.Go(func() { _ = server.Serve(listener) }) // returns when the server is closed
	defer func() { _ = server.Close() }()
	client := &http.Client{Transport: &http.Transport{}, Timeout: roundTripTimeout}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(roundTripInterval)
	defer ticker.Stop()
	for {
		began := time.Now()
		m.pending(&m.requesting, began)
		if err := get(ctx, client, "http://"+listener.Addr().String()); err == nil {
			now := time.Now()
			m.record(1, &m.roundTrips, sample{began, now, now.Sub(began)})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func get(ctx context.Context, client *http.Client, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// Measurement holds the slowest samples within a time range and their number.
type Measurement struct {
	Delay, RoundTrip time.Duration
	Samples          int
}

// Between returns the slowest samples that overlap a time range.
func (m *Meter) Between(from, until time.Time) (found Measurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slowest := func(ring []sample) (most time.Duration) {
		for _, s := range ring {
			if s.until.After(from) && s.from.Before(until) {
				most = max(most, s.took)
				found.Samples++
			}
		}
		return most
	}
	found.Delay, found.RoundTrip = slowest(m.delays), slowest(m.roundTrips)
	// A measurement that is still in progress counts with the time that it has taken so far.
	if !m.sleeping.IsZero() {
		found.Delay = max(found.Delay, until.Sub(m.sleeping))
	}
	if !m.requesting.IsZero() {
		found.RoundTrip = max(found.RoundTrip, until.Sub(m.requesting))
	}
	return found
}

// OutOfBounds reports whether the machine was outside the bounds within which a time limit can be checked.
func (m Measurement) OutOfBounds() bool { return m.Delay > MostDelay || m.RoundTrip > MostRoundTrip }

func (m Measurement) String() string {
	return fmt.Sprintf("scheduler delay %s (bound %s), idle round trip %s (bound %s)", m.Delay.Round(time.Microsecond), MostDelay,
		m.RoundTrip.Round(time.Microsecond), MostRoundTrip)
}
