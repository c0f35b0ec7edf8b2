package turn

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/observe"
	"turnstone/actors/tail"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// TestTheDelayOfATokenIsMeasuredOncePerBatchAndOnlyIfAReaderWaits checks that the cost does not grow with the readers, and
// that a reader who comes late is not mistaken for a delay.
func TestTheDelayOfATokenIsMeasuredOncePerBatchAndOnlyIfAReaderWaits(t *testing.T) {
	s := tail.New(0)
	measured := 0
	s.Measure(func(time.Duration) { measured++ })
	render := func(frames []byte) []byte { return frames }
	readAll := func(readers ...*tail.Cursor) {
		for _, r := range readers {
			runs, _ := s.Take(r, make(tail.Signal, 1), nil)
			for _, run := range runs {
				run.Rendered(render)
			}
		}
	}
	s.Publish(1, 1, []byte("1\n"), false)
	first, second := &tail.Cursor{}, &tail.Cursor{}
	readAll(first, second)
	if measured != 0 {
		t.Errorf("%d samples of a batch for which no reader waited", measured)
	}
	readAll(first, second) // they have caught up, and wait
	s.Publish(2, 2, []byte("2\n"), false)
	readAll(first, second)
	if measured != 1 {
		t.Errorf("%d samples of a batch with two readers, want 1", measured)
	}
}

func TestTheFirstTextOfATurnIsMeasuredOnce(t *testing.T) {
	took := make(chan time.Duration, 10)
	n := startNode(t, actorstest.NewMemory(), llmtest.Answer("one ", "two ", "three"), func(c *testConfig) {
		c.Observer.FirstToken = func(d time.Duration) { took <- d }
	})
	read(t, n, startTurn(t, n, "Hello"), 0, nil)
	read(t, n, startTurn(t, n, "Hello"), 0, nil)
	for range 2 { // a reader may have the end of a turn before its sample is recorded
		select {
		case d := <-took:
			if d < 0 {
				t.Errorf("the first text came after %s", d)
			}
		case <-time.After(testTimeout):
			t.Fatal("a turn has no sample")
		}
	}
	n.Stop()
	if len(took) > 0 {
		t.Errorf("%d more samples than turns", len(took))
	}
}

// appendPath is what a token passes between its decision and its readers, without the store: the publication, one waiting
// reader, and the rendering. Its step of the trace is that of a turn that is not sampled.
type appendPath struct {
	stream   *tail.Stream
	reader   *tail.Cursor
	waker    tail.Signal
	runs     []tail.Run
	observed observe.Turn
	batch    *machine.Batch
	stored   *turnlog.Append
	sequence int64
}

func newAppendPath(observer observe.Observer) *appendPath {
	p := &appendPath{stream: tail.New(0), reader: &tail.Cursor{}, waker: make(tail.Signal, 1), batch: &machine.Batch{}, stored: &turnlog.Append{}}
	p.batch.Events = []protocol.Payload{&protocol.AnswerDelta{}}
	p.stream.Measure(observer.TokenDelay)
	p.pass()
	return p
}

var (
	tokenFrame = []byte(`{"sequence":1,"type":"answer.delta","text":"token "}` + "\n")
	tokenStore = func(done func(error)) { done(nil) }
	tokenDone  = func(error) {}
)

func renderToken(frames []byte) []byte { return frames }

func (p *appendPath) pass() {
	p.observed.FirstText(p.batch.Events)
	p.observed.Commit(p.batch.OnlyText(), p.stored, tokenStore)(tokenDone)
	p.runs, _ = p.stream.Take(p.reader, p.waker, p.runs[:0]) // waits
	p.sequence++
	p.stream.Publish(p.sequence, p.sequence, tokenFrame, false)
	p.runs, _ = p.stream.Take(p.reader, p.waker, p.runs[:0])
	for _, run := range p.runs {
		run.Rendered(renderToken)
	}
}

// measuredPath returns the observer of a path with a real histogram.
func measuredPath() observe.Observer {
	histogram := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "delay", Buckets: []float64{.0001, .001, .01, .1, 1, 5}})
	return observe.Observer{TokenDelay: func(took time.Duration) { histogram.Observe(took.Seconds()) }}
}

func TestMeasuringATokenAllocatesNothing(t *testing.T) {
	const runs = 1000
	plain, measured := newAppendPath(observe.Observer{}), newAppendPath(measuredPath())
	without, with := testing.AllocsPerRun(runs, plain.pass), testing.AllocsPerRun(runs, measured.pass)
	if with > without {
		t.Errorf("%v allocations for a measured token, %v for another", with, without)
	}
}

func TestATokenOfATurnThatIsNotTracedAllocatesNothingForTraces(t *testing.T) {
	n := makeNode(t, actorstest.NewMemory(), llmtest.Answer("one"), nil)
	var untraced observe.Turn
	batch, ctx := &turnlog.Append{}, context.Background()
	if allocated := testing.AllocsPerRun(1000, func() {
		untraced.Commit(true, batch, tokenStore)(tokenDone)
		_ = untraced.Context(ctx)
		_, span := n.observer.Start(ctx, "turn start")
		observe.End(span, nil)
	}); allocated != 0 {
		t.Errorf("%v allocations", allocated)
	}
}

// BenchmarkMeasuredToken compares the path of a token with and without its measurement. It alternates between them, so that
// other load on the host computer hits both, and reports the ratio.
func BenchmarkMeasuredToken(b *testing.B) {
	plain, measured := newAppendPath(observe.Observer{}), newAppendPath(measuredPath())
	const tokens = 1000
	var without, with time.Duration
	pass := func(p *appendPath) time.Duration {
		began := time.Now()
		for range tokens {
			p.pass()
		}
		return time.Since(began)
	}
	b.ReportAllocs()
	for b.Loop() {
		without += pass(plain)
		with += pass(measured)
	}
	b.ReportMetric(float64(without.Nanoseconds())/float64(b.N*tokens), "plain-ns/token")
	b.ReportMetric(float64(with.Nanoseconds())/float64(b.N*tokens), "measured-ns/token")
	b.ReportMetric(with.Seconds()/without.Seconds(), "ratio")
}

// BenchmarkMeasuredRelay is BenchmarkRelay of a node whose measurements are on.
func BenchmarkMeasuredRelay(b *testing.B) {
	relayTokens(b, 200, func(c *testConfig) { c.Observer = measuredPath() })
}
