package turn

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"turnstone/actors/actorstest"
	"turnstone/actors/llm"
	"turnstone/actors/llm/llmtest"
	"turnstone/actors/toolbox"
	"turnstone/actors/toolbox/toolboxtest"
	"turnstone/actors/turn/machine"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// spans records ended spans, and lets tests await them.
type spans struct {
	started atomic.Int32
	mu      sync.Mutex
	ended   []sdktrace.ReadOnlySpan // guarded by mu
	more    chan struct{}
}

func newSpans() *spans { return &spans{more: make(chan struct{}, 1)} }

func (s *spans) OnStart(context.Context, sdktrace.ReadWriteSpan) { s.started.Add(1) }
func (s *spans) Shutdown(context.Context) error                  { return nil }
func (s *spans) ForceFlush(context.Context) error                { return nil }

func (s *spans) OnEnd(span sdktrace.ReadOnlySpan) {
	s.mu.Lock()
	s.ended = append(s.ended, span)
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *spans) all() []sdktrace.ReadOnlySpan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ended)
}

// await waits until a span with this name has ended.
func (s *spans) await(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	deadline := time.After(testTimeout)
	for {
		for _, span := range s.all() {
			if span.Name() == name {
				return span
			}
		}
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("no span %q has ended", name)
		}
	}
}

// traced makes a node record its spans.
func traced(t *testing.T, s *spans, sampler sdktrace.Sampler) func(*testConfig) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(s), sdktrace.WithSampler(sampler))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return func(c *testConfig) { c.Observer.Tracer = provider.Tracer("test") }
}

func TestATraceFollowsATurnThroughItsMailboxToItsCallsAndCommits(t *testing.T) {
	recorded := newSpans()
	model := &llmtest.Script{Play: func(_ context.Context, call int, _ llm.Request, emit func(llm.Chunk) error) error {
		if call > 1 {
			return llmtest.Answer("done").Play(nil, call, llm.Request{}, emit)
		}
		_ = emit(llm.Chunk{Kind: llm.ChunkToolCall, ToolCall: llm.ToolCall{ID: "a", Name: "look", Input: json.RawMessage(`{}`)}})
		return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopToolCalls})
	}}
	node := traced(t, recorded, sdktrace.AlwaysSample())
	n := startNode(t, actorstest.NewMemory(), model, func(c *testConfig) {
		node(c)
		c.Tools = catalogue(t, toolboxtest.Says(&toolbox.Spec{Name: "look", Kind: "compute", Title: "Look", Effect: protocol.EffectRead}, func() (string, error) { return "seen", nil }))
	})
	ctx, request := n.observer.Tracer.Start(t.Context(), "request")
	result, err := n.StartTurn(ctx, &turnlog.Start{AccountID: protocol.NewAccountID(), Input: "Hello"})
	request.End()
	if err != nil {
		t.Fatal(err)
	}
	read(t, n, result.Spec, 0, nil)
	whole := recorded.await(t, "turn")
	parents := map[string]trace.SpanID{
		"turn start": request.SpanContext().SpanID(), "turn": recorded.await(t, "turn start").SpanContext().SpanID(),
		"model call": whole.SpanContext().SpanID(), "tool call": whole.SpanContext().SpanID(), "commit": whole.SpanContext().SpanID(),
	}
	for name, parent := range parents {
		span := recorded.await(t, name)
		if span.SpanContext().TraceID() != request.SpanContext().TraceID() || span.Parent().SpanID() != parent {
			t.Errorf("%s is a child of %s in the trace %s", name, span.Parent().SpanID(), span.SpanContext().TraceID())
		}
	}
}

// TestTheTextOfAnAnswerHasNoSpans checks that the size of a trace does not grow with the answer.
func TestTheTextOfAnAnswerHasNoSpans(t *testing.T) {
	count := func(pieces int) int {
		recorded := newSpans()
		gate := make(chan struct{}, 1)
		model := &llmtest.Script{Play: func(_ context.Context, _ int, _ llm.Request, emit func(llm.Chunk) error) error {
			for range pieces {
				if err := emit(llm.Chunk{Kind: llm.ChunkText, Text: "piece "}); err != nil {
					return err
				}
				<-gate
			}
			return emit(llm.Chunk{Kind: llm.ChunkStop, Stop: llm.StopEndTurn})
		}}
		n := startNode(t, actorstest.NewMemory(), model, traced(t, recorded, sdktrace.AlwaysSample()))
		read(t, n, startTurn(t, n, "Hello"), 0, func(p protocol.Payload) bool {
			if isDelta(p) {
				gate <- struct{}{}
			}
			return false
		})
		recorded.await(t, "turn")
		return len(recorded.all())
	}
	if few, many := count(2), count(40); many > few {
		t.Errorf("%d spans of an answer with 2 pieces, %d of one with 40", few, many)
	}
}

func TestACommandIsASpanOfItsSender(t *testing.T) {
	recorded := newSpans()
	gate := make(chan struct{})
	n := startNode(t, actorstest.NewMemory(), hangingModel(1, gate), traced(t, recorded, sdktrace.AlwaysSample()))
	defer close(gate)
	spec := startTurn(t, n, "Hello")
	read(t, n, spec, 0, isDelta)
	ctx, request := n.observer.Tracer.Start(t.Context(), "request")
	defer request.End()
	_, err := n.Command(ctx, spec.AccountID, spec.TurnID, &machine.Command{Kind: machine.CommandCancel, SteeringID: protocol.NewSteeringID(), Scope: protocol.CancelTurn, By: protocol.CancelledByUser})
	if err != nil {
		t.Fatal(err)
	}
	if span := recorded.await(t, "command"); span.Parent().SpanID() != request.SpanContext().SpanID() {
		t.Errorf("the command is a child of %s", span.Parent().SpanID())
	}
}

func TestATurnOfARequestThatIsNotSampledHasNoSpans(t *testing.T) {
	recorded := newSpans()
	n := startNode(t, actorstest.NewMemory(), llmtest.Answer("one"), traced(t, recorded, sdktrace.AlwaysSample()))
	other := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test")
	ctx, request := other.Start(t.Context(), "request")
	defer request.End()
	result, err := n.StartTurn(ctx, &turnlog.Start{AccountID: protocol.NewAccountID(), Input: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	read(t, n, result.Spec, 0, nil)
	if started := recorded.started.Load(); started != 0 {
		t.Errorf("%d spans were started", started)
	}
}
