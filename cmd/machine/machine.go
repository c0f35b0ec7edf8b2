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
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The bounds within which a machine is fast enough to check a time limit. On an idle machine a delay and a round trip
// take less than 2 ms, and a computation takes its processor time. Refusing a request takes several such steps, and the
// shortest limit leaves 100 ms for all of them.
//
// The three differ: a scheduler runs a thread that has slept before all others, so on a machine with many busy threads
// delays and round trips may be short while every computation, such as a login to Postgres, takes many times longer.
const (
	MostDelay     = 10 * time.Millisecond // from the time at which a sleeping thread was due until it ran
	MostRoundTrip = 10 * time.Millisecond // of an idle HTTP request on loopback
	MostCompute   = 3 * computation       // of a computation
)

const (
	computation       = 5 * time.Millisecond // the processor time of a computation; a scheduler's slice is shorter
	delayInterval     = 5 * time.Millisecond
	roundTripInterval = 25 * time.Millisecond
	computeInterval   = 250 * time.Millisecond
	roundTripTimeout  = 10 * time.Second
	ringSize          = 16_384 // of each kind: more than a minute
)

// sample is one measurement and the time that it covers.
type sample struct {
	from, until time.Time
	took        time.Duration
}

// series holds the samples of one kind.
type series struct {
	ring    []sample  // at most ringSize
	next    int       // position in ring, once it is full
	pending time.Time // since when a sample is in progress; zero: none
}

func (s *series) add(one sample) {
	s.pending = time.Time{}
	if len(s.ring) < ringSize {
		s.ring = append(s.ring, one)
		return
	}
	s.ring[s.next] = one
	s.next = (s.next + 1) % ringSize
}

// slowest returns the slowest sample that overlaps a time range, and the number of those samples. A sample in progress
// counts with the time that it has taken so far.
func (s *series) slowest(from, until time.Time) (most time.Duration, samples int) {
	for _, one := range s.ring {
		if one.until.After(from) && one.from.Before(until) {
			most = max(most, one.took)
			samples++
		}
	}
	if !s.pending.IsZero() {
		most = max(most, until.Sub(s.pending))
	}
	return most, samples
}

// Meter samples the machine until it is stopped.
//
// Concurrency: its methods may be called from any goroutine.
type Meter struct {
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu                               sync.Mutex
	delays, roundTrips, computations series // guarded by mu
}

// Start returns a running meter; Stop stops it.
func Start() *Meter {
	ctx, cancel := context.WithCancel(context.Background())
	m := &Meter{cancel: cancel}
	m.running.Go(func() { m.sampleDelays(ctx) })
	m.running.Go(func() { m.sampleRoundTrips(ctx) })
	m.running.Go(func() { m.sampleComputations(ctx) })
	return m
}

// Stop stops the sampling. The samples can still be read.
func (m *Meter) Stop() {
	m.cancel()
	m.running.Wait()
	for _, s := range []*series{&m.delays, &m.roundTrips, &m.computations} {
		m.begin(s, time.Time{})
	}
}

func (m *Meter) begin(s *series, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.pending = at
}

func (m *Meter) record(s *series, one sample) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s.add(one)
}

func (m *Meter) sampleDelays(ctx context.Context) {
	timer := time.NewTimer(delayInterval)
	defer timer.Stop()
	for due := time.Now().Add(delayInterval); ; due = time.Now().Add(delayInterval) {
		m.begin(&m.delays, due)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		m.record(&m.delays, sample{due, now, now.Sub(due)})
		timer.Reset(delayInterval)
	}
}

// sampleComputations measures how long a computation takes. It uses 2 % of a processor.
func (m *Meter) sampleComputations(ctx context.Context) {
	runtime.LockOSThread() // the clock is that of the thread
	defer runtime.UnlockOSThread()
	ticker := time.NewTicker(computeInterval)
	defer ticker.Stop()
	for {
		began := time.Now()
		m.begin(&m.computations, began)
		if !compute() {
			return // without samples no computation is out of bounds
		}
		now := time.Now()
		m.record(&m.computations, sample{began, now, now.Sub(began)})
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// compute uses the processor for the time computation. It reports whether the clock of the thread could be read.
func compute() bool {
	for end := time.Duration(0); ; {
		var used unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
			return false
		}
		now := time.Duration(used.Nano())
		if end == 0 {
			end = now + computation
		}
		if now >= end {
			return true
		}
	}
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
		m.begin(&m.roundTrips, began)
		if err := get(ctx, client, "http://"+listener.Addr().String()); err == nil {
			now := time.Now()
			m.record(&m.roundTrips, sample{began, now, now.Sub(began)})
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
	Delay, RoundTrip, Compute time.Duration
	Samples                   int
}

// Between returns the slowest samples that overlap a time range.
func (m *Meter) Between(from, until time.Time) (found Measurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var delays, roundTrips, computations int
	found.Delay, delays = m.delays.slowest(from, until)
	found.RoundTrip, roundTrips = m.roundTrips.slowest(from, until)
	found.Compute, computations = m.computations.slowest(from.Add(-computeInterval), until) // contains at least one
	found.Samples = delays + roundTrips + computations
	return found
}

// SlowFor returns the mean time that a computation took in a time range, and whether it was outside its bound. Single slow
// moments do not make it true.
func (m *Meter) SlowFor(from, until time.Time) (mean time.Duration, slow bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	total, samples := time.Duration(0), 0
	for _, one := range m.computations.ring {
		if one.until.After(from) && one.from.Before(until) {
			total += one.took
			samples++
		}
	}
	if samples == 0 {
		return 0, false
	}
	mean = total / time.Duration(samples)
	return mean, mean > MostCompute
}

// OutOfBounds reports whether the machine was outside the bounds within which a time limit can be checked.
func (m Measurement) OutOfBounds() bool {
	return m.Delay > MostDelay || m.RoundTrip > MostRoundTrip || m.Compute > MostCompute
}

func (m Measurement) String() string {
	return fmt.Sprintf("scheduler delay %s (bound %s), idle round trip %s (bound %s), %s of processor time took %s (bound %s)",
		m.Delay.Round(time.Microsecond), MostDelay, m.RoundTrip.Round(time.Microsecond), MostRoundTrip,
		computation, m.Compute.Round(time.Microsecond), MostCompute)
}
