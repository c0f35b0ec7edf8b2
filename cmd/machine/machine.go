// Package machine measures the machine while something with a time limit runs on it, so that a check that depends on time
// can tell a slow program from a machine without a free processor. It may not import anything of ours: tests of every
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

// The bounds of a machine on which a time limit can be checked. Idle, both measurements are below 2 ms. A refused request
// consists of several such steps, and the shortest limit leaves 100 ms for all of them.
const (
	MostDelay     = 10 * time.Millisecond // from when a sleeping thread was due until it ran
	MostRoundTrip = 10 * time.Millisecond // of an idle HTTP request on loopback
)

const (
	delayInterval     = 5 * time.Millisecond
	roundTripInterval = 25 * time.Millisecond
	roundTripTimeout  = 10 * time.Second
	keptSamples       = 16_384 // of each kind: more than a minute
)

// sample is one measurement, with the time that it covers.
type sample struct {
	from, until time.Time
	took        time.Duration
}

// Meter samples the machine until it is stopped. Its methods may be called from any goroutine.
type Meter struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu         sync.Mutex
	delays     []sample // guarded by mu; a ring of keptSamples
	roundTrips []sample // guarded by mu; a ring of keptSamples
	next       [2]int   // guarded by mu: where the rings continue

	sleeping, asking time.Time // guarded by mu: since when a thread is due and a request is under way; zero: none
}

// Start returns a meter that samples; Stop ends it.
func Start() *Meter {
	ctx, cancel := context.WithCancel(context.Background())
	m := &Meter{cancel: cancel}
	m.running.Go(func() { m.sampleDelays(ctx) })
	m.running.Go(func() { m.sampleRoundTrips(ctx) })
	return m
}

// Stop ends the sampling. What was measured can still be read.
func (m *Meter) Stop() {
	m.cancel()
	m.running.Wait()
	m.pending(&m.sleeping, time.Time{})
	m.pending(&m.asking, time.Time{})
}

func (m *Meter) keep(kind int, ring *[]sample, s sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kind == 1 {
		m.asking = time.Time{}
	}
	if len(*ring) < keptSamples {
		*ring = append(*ring, s)
		return
	}
	(*ring)[m.next[kind]] = s
	m.next[kind] = (m.next[kind] + 1) % keptSamples
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
		m.keep(0, &m.delays, sample{due, now, now.Sub(due)})
		timer.Reset(delayInterval)
	}
}

func (m *Meter) pending(which *time.Time, since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*which = since
}

// sampleRoundTrips asks a server that does nothing.
func (m *Meter) sampleRoundTrips(ctx context.Context) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return // without samples no round trip is out of bounds
	}
	server := &http.Server{ReadHeaderTimeout: roundTripTimeout, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	})}
	m.running.Go(func() { _ = server.Serve(listener) }) // it ends when it is closed
	defer func() { _ = server.Close() }()
	client := &http.Client{Transport: &http.Transport{}, Timeout: roundTripTimeout}
	defer client.CloseIdleConnections()
	ticker := time.NewTicker(roundTripInterval)
	defer ticker.Stop()
	for {
		began := time.Now()
		m.pending(&m.asking, began)
		if err := ask(ctx, client, "http://"+listener.Addr().String()); err == nil {
			now := time.Now()
			m.keep(1, &m.roundTrips, sample{began, now, now.Sub(began)})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func ask(ctx context.Context, client *http.Client, address string) error {
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

// Measurement is how slow the machine was at its slowest within a time.
type Measurement struct {
	Delay, RoundTrip time.Duration
	Samples          int
}

// Between returns the slowest of what was measured in a time.
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
	// What has not ended yet counts as long as it already takes.
	if !m.sleeping.IsZero() {
		found.Delay = max(found.Delay, until.Sub(m.sleeping))
	}
	if !m.asking.IsZero() {
		found.RoundTrip = max(found.RoundTrip, until.Sub(m.asking))
	}
	return found
}

// Outside reports whether the machine was outside the bounds within which a time limit can be checked.
func (m Measurement) Outside() bool { return m.Delay > MostDelay || m.RoundTrip > MostRoundTrip }

func (m Measurement) String() string {
	return fmt.Sprintf("scheduler delay %s (bound %s), idle round trip %s (bound %s)", m.Delay.Round(time.Microsecond), MostDelay,
		m.RoundTrip.Round(time.Microsecond), MostRoundTrip)
}
