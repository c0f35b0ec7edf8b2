package main

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Delays are kept in microseconds, to three digits, up to a minute: what took longer counts as a minute.
const (
	slowest   = int64(time.Minute / time.Microsecond)
	precision = 3
	shards    = 16 // so that streams seldom wait for one another to record
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, slowest, precision) }

func record(h *hdrhistogram.Histogram, nanos int64) {
	_ = h.RecordValue(min(max(nanos/int64(time.Microsecond), 1), slowest)) // within the bounds by now
}

// recorder gathers what all streams of a fleet see while the window is open.
type recorder struct {
	open   atomic.Bool
	shards [shards]shard

	mu     sync.Mutex
	errors map[string]int // guarded by mu; whether or not the window was open
}

type shard struct {
	mu     sync.Mutex
	delay  *hdrhistogram.Histogram // guarded by mu: of tokens
	first  *hdrhistogram.Histogram // guarded by mu: from request to first token
	begin  *hdrhistogram.Histogram // guarded by mu: from request to the head of the answer
	tokens int64                   // guarded by mu
	events int64                   // guarded by mu
	bytes  int64                   // guarded by mu
}

func newRecorder() *recorder {
	r := &recorder{errors: map[string]int{}}
	for i := range r.shards {
		s := &r.shards[i]
		s.delay, s.first, s.begin = newHistogram(), newHistogram(), newHistogram()
	}
	return r
}

// reset forgets what was seen; the window is closed.
func (r *recorder) reset() {
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		s.delay.Reset()
		s.first.Reset()
		s.begin.Reset()
		s.tokens, s.events, s.bytes = 0, 0, 0
		s.mu.Unlock()
	}
}

func (r *recorder) shard(i int) *shard { return &r.shards[i%shards] }

// fail counts an error by its kind, with the first of each kept for the report.
func (r *recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors[err.Error()]++
}

// seen is what a window saw.
type seen struct {
	Delay, First, Begin   spread
	Tokens, Events, Bytes int64
}

// sum merges the shards.
func (r *recorder) sum() seen {
	var total seen
	delay, first, begin := newHistogram(), newHistogram(), newHistogram()
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		delay.Merge(s.delay)
		first.Merge(s.first)
		begin.Merge(s.begin)
		total.Tokens += s.tokens
		total.Events += s.events
		total.Bytes += s.bytes
		s.mu.Unlock()
	}
	total.Delay, total.First, total.Begin = spreadOf(delay), spreadOf(first), spreadOf(begin)
	return total
}

// spread is how long something took, in milliseconds.
type spread struct {
	N             int64
	P50, P99, Max float64
}

func spreadOf(h *hdrhistogram.Histogram) spread {
	millis := func(micros int64) float64 { return float64(micros) / 1000 }
	return spread{
		N: h.TotalCount(), P50: millis(h.ValueAtQuantile(50)), P99: millis(h.ValueAtQuantile(99)), Max: millis(h.Max()),
	}
}
