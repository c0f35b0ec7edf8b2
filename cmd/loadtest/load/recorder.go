package load

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Delays are recorded in microseconds with three significant digits. A delay of more than a minute counts as a minute.
const (
	maxDelay  = int64(time.Minute / time.Microsecond)
	precision = 3
	Shards    = 16 // so that streams rarely contend for a lock
)

// NewHistogram returns a histogram of delays.
func NewHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxDelay, precision) }

// Record adds a delay, in nanoseconds, to a histogram.
func Record(h *hdrhistogram.Histogram, nanos int64) {
	_ = h.RecordValue(min(max(nanos/int64(time.Microsecond), 1), maxDelay)) // in range, so there is no error
}

// Recorder collects the measurements of all streams of a fleet while its window is open.
type Recorder struct {
	Open   atomic.Bool
	shards [Shards]shard

	mu     sync.Mutex
	Errors map[string]int // guarded by mu: counts by text, whether or not the window is open
}

type shard struct {
	mu     sync.Mutex
	delay  *hdrhistogram.Histogram // guarded by mu: token delays
	first  *hdrhistogram.Histogram // guarded by mu: from request to first token
	begin  *hdrhistogram.Histogram // guarded by mu: from request to response header
	tokens int64                   // guarded by mu
	events int64                   // guarded by mu
	bytes  int64                   // guarded by mu
}

// NewRecorder returns a recorder whose window is closed.
func NewRecorder() *Recorder {
	r := &Recorder{Errors: map[string]int{}}
	for i := range r.shards {
		s := &r.shards[i]
		s.delay, s.first, s.begin = NewHistogram(), NewHistogram(), NewHistogram()
	}
	return r
}

// Reset discards all measurements. The window must be closed.
func (r *Recorder) Reset() {
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

func (r *Recorder) shard(i int) *shard { return &r.shards[i%Shards] }

// Fail counts an error by its text.
func (r *Recorder) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Errors[err.Error()]++
}

// Totals is the sum of what the streams measured in a window.
type Totals struct {
	Delay, First, Begin   Spread
	Tokens, Events, Bytes int64
}

// Sum merges the shards.
func (r *Recorder) Sum() Totals {
	var total Totals
	delay, first, begin := NewHistogram(), NewHistogram(), NewHistogram()
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
	total.Delay, total.First, total.Begin = SpreadOf(delay), SpreadOf(first), SpreadOf(begin)
	return total
}

// Spread summarizes delays, in milliseconds.
type Spread struct {
	N                  int64
	P50, P95, P99, Max float64
}

// SpreadOf returns the spread of the delays in a histogram.
func SpreadOf(h *hdrhistogram.Histogram) Spread {
	millis := func(micros int64) float64 { return float64(micros) / 1000 }
	return Spread{
		N: h.TotalCount(), P50: millis(h.ValueAtQuantile(50)), P95: millis(h.ValueAtQuantile(95)), P99: millis(h.ValueAtQuantile(99)), Max: millis(h.Max()),
	}
}

// Failures returns the recorded errors, each with its count.
func (r *Recorder) Failures() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := make([]string, 0, len(r.Errors))
	for text, n := range r.Errors {
		lines = append(lines, fmt.Sprintf("%d × %s", n, text))
	}
	slices.Sort(lines)
	return lines
}

// Sample returns one recorded error with its count, or "none".
func (r *Recorder) Sample() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for text, n := range r.Errors {
		return fmt.Sprintf("%d × %s", n, text)
	}
	return "none"
}
