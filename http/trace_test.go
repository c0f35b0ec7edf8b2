package http

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"turnstone/http/route"
	"turnstone/protocol/clocktest"
)

// tracedSpans exports spans into memory, and lets a test await them.
type tracedSpans struct {
	*tracetest.InMemoryExporter
	mu   sync.Mutex
	more chan struct{} // guarded by mu; closed at the next export
}

func newTracedSpans() *tracedSpans {
	return &tracedSpans{InMemoryExporter: tracetest.NewInMemoryExporter(), more: make(chan struct{})}
}

// ExportSpans implements sdktrace.SpanExporter.
func (s *tracedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := s.InMemoryExporter.ExportSpans(ctx, spans)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.more)
	s.more = make(chan struct{})
	return err
}

func (s *tracedSpans) exported() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.more
}

// await waits until a span with this name is exported. It returns the spans of its trace by name.
func (s *tracedSpans) await(t *testing.T, name string) map[string]tracetest.SpanStub {
	t.Helper()
	deadline := time.After(clocktest.HangGuard)
	for {
		more := s.exported()
		for _, span := range s.GetSpans() {
			if span.Name == name {
				return s.trace(span)
			}
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("no span %q was exported", name)
		}
	}
}

func (s *tracedSpans) trace(of tracetest.SpanStub) map[string]tracetest.SpanStub {
	found := map[string]tracetest.SpanStub{}
	for _, span := range s.GetSpans() {
		if span.SpanContext.TraceID() == of.SpanContext.TraceID() {
			found[span.Name] = span
		}
	}
	return found
}

// traceTo makes a world trace every request. It precedes liveOn.
func traceTo(t *testing.T, spans *tracedSpans, sampler sdktrace.Sampler) func(*testConfig) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithSampler(sampler))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return func(c *testConfig) { c.Tracer = provider.Tracer("test") }
}

const traceCanary = "canary4e1b"

func TestOneRequestIsOneTraceThroughMailboxCommitAndModelCall(t *testing.T) {
	t.Parallel()
	spans := newTracedSpans()
	core, logs := observer.New(zapcore.InfoLevel)
	w := newWorld(t, traceTo(t, spans, sdktrace.AlwaysSample()), func(c *testConfig) {
		c.Log = zap.New(core)
		liveOn(t, c)
	})
	c := w.client().register(traceCanary + "@example.com")
	c.expect(201, "POST", "/conversations", route.Object{"title": traceCanary}, keyField, traceCanary)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	c.expect(200, "POST", "/chat", route.Object{"input": []route.Object{{"type": "text", "text": traceCanary}}},
		"Traceparent", parent, "Tracestate", "vendor="+traceCanary, "User-Agent", traceCanary, "X-Forwarded-For", traceCanary)
	c.do("GET", "/conversations/"+traceCanary+"?cursor="+traceCanary, nil)
	trace := spans.await(t, "turn")
	for child, of := range map[string]string{
		"turn start": "POST /chat", "turn": "turn start", "model call": "turn", "commit": "turn",
	} {
		if span, there := trace[child]; !there || span.Parent.SpanID() != trace[of].SpanContext.SpanID() {
			t.Errorf("%s is no child of %s: %v", child, of, names(trace))
		}
	}
	request := trace["POST /chat"]
	if request.Parent.IsValid() || request.SpanContext.TraceID().String() == "0af7651916cd43dd8448eb211c80319c" {
		t.Error("a client's traceparent became the parent of a request")
	}
	if len(request.Links) != 1 || request.Links[0].SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("the links of the request are %v", request.Links)
	}
	for _, span := range spans.GetSpans() {
		if text := fmt.Sprintf("%+v", span); strings.Contains(text, traceCanary) || strings.Contains(text, tokenPrefix) || strings.Contains(text, c.account.AccountID.String()) {
			t.Errorf("a span contains %s", text)
		}
	}
	wantTraceInLog(t, logs, &request)
}

func names(spans map[string]tracetest.SpanStub) (all []string) {
	for name := range spans {
		all = append(all, name)
	}
	return all
}

// wantTraceInLog checks that the span and the line in the log of a request name each other.
func wantTraceInLog(t *testing.T, logs *observer.ObservedLogs, span *tracetest.SpanStub) {
	t.Helper()
	attributes := attribute.NewSet(span.Attributes...)
	id, _ := attributes.Value("turnstone.request_id")
	account, _ := attributes.Value("turnstone.account")
	for _, entry := range logs.FilterMessage("request").All() {
		fields := entry.ContextMap()
		if fields["request_id"] != id.AsString() {
			continue
		}
		if fields["trace_id"] != span.SpanContext.TraceID().String() || fields["account"] != account.AsString() {
			t.Errorf("the log has %v, and the span %v", fields, span.Attributes)
		}
		return
	}
	t.Errorf("the log has no line of %s", id.AsString())
}

func TestARequestThatIsNotSampledHasNoSpanAndNoTraceInTheLog(t *testing.T) {
	t.Parallel()
	spans := newTracedSpans()
	core, logs := observer.New(zapcore.InfoLevel)
	w := newWorld(t, traceTo(t, spans, sdktrace.NeverSample()), func(c *testConfig) { c.Log = zap.New(core) })
	w.client().expect(200, "GET", "/health", nil)
	if len(spans.GetSpans()) != 0 {
		t.Error("a span was exported")
	}
	for _, entry := range logs.FilterMessage("request").All() {
		if entry.ContextMap()["trace_id"] != nil {
			t.Errorf("the log has %v", entry.ContextMap())
		}
	}
}
