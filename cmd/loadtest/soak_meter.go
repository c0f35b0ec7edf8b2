package main

import (
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What is timed.
const (
	tokenTime  = iota // from when a token was due until its reader had it, away from faults
	firstTime         // from a start that was due to its first event, away from faults
	appendTime        // from an input or a cancel to its 202: one append to the turn's log, away from faults
	writeTime         // from a title or a draft to its answer: one transaction, away from faults
	readTime          // from asking for a page or a list to its answer, away from faults
	anyToken          // as the first, in faults too
	anyFirst          // as the second, in faults too
	timings
)

var timingNames = [timings]string{"token", "first event", "append", "write", "read", "token (faults too)", "first event (faults too)"}

// meter keeps delays of every kind since it was last emptied.
type meter struct {
	shards [shards]meterShard
}

type meterShard struct {
	mu     sync.Mutex
	times  [timings]*hdrhistogram.Histogram // guarded by mu
	tokens int64                            // guarded by mu
	events int64                            // guarded by mu
}

func newTimes() (all [timings]*hdrhistogram.Histogram) {
	for i := range all {
		all[i] = newHistogram()
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
	s := &m.shards[n%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	record(s.times[what], nanos)
}

// token counts one, with its delay when calm says that no fault was near; late is one that its reader was not there for.
func (m *meter) token(n int, nanos int64, calm, late bool) {
	s := &m.shards[n%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens++
	if late {
		return
	}
	record(s.times[anyToken], nanos)
	if calm {
		record(s.times[tokenTime], nanos)
	}
}

func (m *meter) event(n int) {
	s := &m.shards[n%shards]
	s.mu.Lock()
	s.events++
	s.mu.Unlock()
}

// empty takes everything out.
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

// slope is how much y grows while x grows by one: least squares.
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
