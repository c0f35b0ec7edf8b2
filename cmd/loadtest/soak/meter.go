package soak

import (
	"sync"

	"turnstone/cmd/loadtest/load"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The kinds of delays.
const (
	tokenTime  = iota // from when a token was due until its reader had it, outside faults
	firstTime         // from when a start was due to its first event, outside faults
	appendTime        // from an input or a cancel to its 202: one append to the turn's log, outside faults
	writeTime         // from a title or a draft to its response: one transaction, outside faults
	readTime          // from a request for a page or a list to its response, outside faults
	anyToken          // like tokenTime, including faults
	anyFirst          // like firstTime, including faults
	timings
)

var timingNames = [timings]string{"token", "first event", "append", "write", "read", "token (including faults)", "first event (including faults)"}

// meter records delays of every kind, and counts, since it was last emptied.
type meter struct {
	shards [load.Shards]meterShard
}

type meterShard struct {
	mu     sync.Mutex
	times  [timings]*hdrhistogram.Histogram // guarded by mu
	tokens int64                            // guarded by mu
	events int64                            // guarded by mu
}

func newTimes() (all [timings]*hdrhistogram.Histogram) {
	for i := range all {
		all[i] = load.NewHistogram()
	}
	return all
}

func newMeter() *meter {
	m := new(meter)
	for i := range m.shards {
		m.shards[i].times = newTimes()
	}
	return m
}

func (m *meter) record(n int, what int, nanos int64) {
	s := &m.shards[n%load.Shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	load.Record(s.times[what], nanos)
}

// token counts a token and records its delay, as tokenTime only if calm, which means that no fault was near. The delay
// of a late token, which was due while its reader was disconnected, is not recorded.
func (m *meter) token(n int, nanos int64, calm, late bool) {
	s := &m.shards[n%load.Shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens++
	if late {
		return
	}
	load.Record(s.times[anyToken], nanos)
	if calm {
		load.Record(s.times[tokenTime], nanos)
	}
}

func (m *meter) event(n int) {
	s := &m.shards[n%load.Shards]
	s.mu.Lock()
	s.events++
	s.mu.Unlock()
}

// empty returns everything that was recorded, and resets the meter.
func (m *meter) empty() (times [timings]*hdrhistogram.Histogram, tokens, events int64) {
	times = newTimes()
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		for what, h := range s.times {
			times[what].Merge(h)
			h.Reset()
		}
		tokens, events = tokens+s.tokens, events+s.events
		s.tokens, s.events = 0, 0
		s.mu.Unlock()
	}
	return times, tokens, events
}

// slope returns how much y grows while x grows by one, by least squares. It is 0 if there is no such line.
func slope(x, y []float64) float64 {
	n := float64(min(len(x), len(y)))
	if n < 2 {
		return 0
	}
	var sx, sy, sxx, sxy float64
	for i := range int(n) {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	spread := n*sxx - sx*sx
	if spread == 0 {
		return 0
	}
	return (n*sxy - sx*sy) / spread
}
