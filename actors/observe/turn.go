package observe

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Turn observes one turn on this node, from the first decision of its actor to the last one. Its span is the parent of
// those of the turn's calls and commits:
//
//	request ─▶ turn start ─▶ (message) ─▶ turn ─┬─▶ commit      of each step except those of mere text
//	request ─▶ (message) ─▶ command             ├─▶ model call
//	turn adoption ─▶ (message) ─▶ turn          └─▶ tool call
//
// The sender of a message puts the context of its span into the message, and the actor starts a child of it when it decides
// on the message. No span belongs to a token. The actor owns the Turn. The zero value observes nothing.
type Turn struct {
	observer *Observer
	span     trace.Span // nil: not sampled
	started  time.Time  // zero: the first text is not awaited
}

// Begin starts the span as a child of from, or as the first span of a trace if from is empty: whether a trace is sampled is
// decided at its first span. started is the time of the turn's start; zero: it did not start here.
func (t *Turn) Begin(o *Observer, from trace.SpanContext, spec *turnlog.Spec, epoch int32, started time.Time) {
	t.observer, t.started = o, started
	if o.Tracer == nil || t.span != nil || from.IsValid() && !from.IsSampled() {
		return
	}
	_, span := o.Tracer.Start(trace.ContextWithSpanContext(context.Background(), from), "turn", trace.WithAttributes(
		attrTurn.String(spec.TurnID.String()), attrEpoch.Int(int(epoch)), attrProfile.String(string(spec.Routing.Profile))))
	if span.SpanContext().IsSampled() {
		t.span = span
	}
}

// Context returns ctx with the span of the turn.
func (t *Turn) Context(ctx context.Context) context.Context {
	if t.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, t.span)
}

// Commit returns store with a span that ends when the step is stored. A step that only adds text has none: there would be
// one for every token.
func (t *Turn) Commit(onlyText bool, batch *turnlog.Append, store func(done func(error))) func(done func(error)) {
	if t.span == nil || onlyText {
		return store
	}
	observer, parent := t.observer, t.span
	return func(done func(error)) {
		_, span := observer.Tracer.Start(trace.ContextWithSpan(context.Background(), parent), "commit", trace.WithAttributes(
			attrFirst.Int64(batch.First), attrLast.Int64(batch.Last), attrState.String(string(batch.State)), attrBytes.Int(len(batch.Frames))))
		store(func(err error) {
			End(span, err)
			done(err)
		})
	}
}

// FirstText reports whether events have the first text of the turn's answer. It looks at them only until it has found one.
func (t *Turn) FirstText(events []protocol.Payload) bool {
	if t.started.IsZero() {
		return false
	}
	for _, event := range events {
		switch event.(type) {
		case *protocol.AnswerDelta, *protocol.CodeDelta:
			return true
		}
	}
	return false
}

// FirstTextShown notes that the first text is visible.
func (t *Turn) FirstTextShown() {
	if observe := t.observer.FirstToken; observe != nil {
		observe(time.Since(t.started))
	}
	if t.span != nil {
		t.span.AddEvent("first text")
	}
	t.started = time.Time{}
}

// End ends the span. lost means that another owner continues the turn.
func (t *Turn) End(last int64, state protocol.TurnState, lost bool) {
	if t.span == nil {
		return
	}
	t.span.SetAttributes(attrLast.Int64(last), attrState.String(string(state)))
	if lost {
		t.span.SetStatus(codes.Error, "the turn left this node")
	}
	t.span.End()
	t.span = nil
}
