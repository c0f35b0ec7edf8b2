// Package observe measures and traces the work of a node's actors: the delay of tokens, the time to the first text, and
// spans that follow a request across mailboxes. Package turn calls it; package telemetry of
// cmd passes it the functions that record what it measures.
//
// It decides nothing, knows no exporter and no registry, and takes part in no commit. On the path of a token it takes no
// lock and allocates nothing: the measurements are functions, and a turn that is not sampled has no spans.
package observe

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"turnstone/actors/llm"
	"turnstone/protocol"
	"turnstone/protocol/turnlog"
)

// Observer receives what a node measures. Every field may be nil. Any goroutine may call the functions, on the path of a
// token too: they must neither block nor allocate.
type Observer struct {
	// TokenDelay gets the time from the publication of a stored batch of events until its bytes are ready for the
	// connection of the first reader. There is one sample for each batch, however many readers there are, and none for a
	// batch for which no reader waited.
	TokenDelay func(time.Duration)
	// FirstToken gets the time from the start of a turn until its first text is visible. Turns that another node or
	// process started are not measured: their start has the time of another clock.
	FirstToken func(time.Duration)
	// Tracer starts the spans.
	Tracer trace.Tracer
}

// The attributes of spans: identifiers of turns and requests, names and numbers, never content.
const (
	attrTurn      = attribute.Key("turnstone.turn_id")
	attrEpoch     = attribute.Key("turnstone.epoch")
	attrProfile   = attribute.Key("turnstone.profile")
	attrState     = attribute.Key("turnstone.state")
	attrFirst     = attribute.Key("turnstone.first_sequence")
	attrLast      = attribute.Key("turnstone.last_sequence")
	attrBytes     = attribute.Key("turnstone.bytes")
	attrStep      = attribute.Key("turnstone.step")
	attrProvider  = attribute.Key("turnstone.provider")
	attrTool      = attribute.Key("turnstone.tool")
	attrCommand   = attribute.Key("turnstone.command")
	attrCause     = attribute.Key("turnstone.cause")
	attrAdoptions = attribute.Key("turnstone.adoptions")
	attrRequest   = attribute.Key("turnstone.request_id")
	attrCode      = attribute.Key("turnstone.code")
)

// noSpan is what spans are while nothing is sampled.
var noSpan = trace.SpanFromContext(context.Background())

// From returns the span of ctx, to be sent in a message to an actor.
func From(ctx context.Context) trace.SpanContext { return trace.SpanContextFromContext(ctx) }

// propagator encodes a span for a message to another node, as the header traceparent does.
var propagator propagation.TraceContext

const traceparent = "traceparent"

// Encode encodes a span for a message to another node. It returns "" if there is none.
func Encode(span trace.SpanContext) string {
	carrier := propagation.MapCarrier{}
	propagator.Inject(trace.ContextWithSpanContext(context.Background(), span), carrier)
	return carrier[traceparent]
}

// Decode returns the span that Encode has encoded; an invalid one for any other text.
func Decode(text string) trace.SpanContext {
	return From(propagator.Extract(context.Background(), propagation.MapCarrier{traceparent: text}))
}

// Start starts a child of the span of ctx. If that is not sampled, it returns ctx and a span that does nothing.
func (o *Observer) Start(ctx context.Context, name string) (context.Context, trace.Span) {
	if o.Tracer == nil || !From(ctx).IsSampled() {
		return ctx, noSpan
	}
	return o.Tracer.Start(ctx, name)
}

// StartModelCall starts the span of a model call.
func (o *Observer) StartModelCall(ctx context.Context, provider string, step int) (context.Context, *ModelCall) {
	ctx, span := o.Start(ctx, "model call")
	if span.IsRecording() {
		span.SetAttributes(attrProvider.String(provider), attrStep.Int(step))
	}
	return ctx, &ModelCall{span: span}
}

// StartToolCall starts the span of a tool call. The tool is one of the node.
func (o *Observer) StartToolCall(ctx context.Context, tool string) (context.Context, trace.Span) {
	ctx, span := o.Start(ctx, "tool call")
	if span.IsRecording() {
		span.SetAttributes(attrTool.String(tool))
	}
	return ctx, span
}

// StartCommand starts the span of a command, as a child of the span of its sender.
func (o *Observer) StartCommand(from trace.SpanContext, kind, requestID string) trace.Span {
	if o.Tracer == nil || !from.IsSampled() {
		return noSpan
	}
	_, span := o.Tracer.Start(trace.ContextWithSpanContext(context.Background(), from), "command",
		trace.WithAttributes(attrCommand.String(kind), attrRequest.String(requestID)))
	return span
}

// StartAdoption starts the trace of an adoption. The trace of the node that ran the turn before is not known.
func (o *Observer) StartAdoption(claim *turnlog.Claim) trace.Span {
	if o.Tracer == nil {
		return noSpan
	}
	_, span := o.Tracer.Start(context.Background(), "turn adoption", trace.WithAttributes(attrTurn.String(claim.TurnID.String()),
		attrEpoch.Int(int(claim.Epoch)), attrCause.String(string(claim.Cause)), attrAdoptions.Int(claim.Adoptions)))
	return span
}

// End ends a span. Of an error it shows only the code: its text may contain more than a trace may.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		fail(span, string(protocol.CodeOf(err)))
	}
	span.End()
}

// EndToolCall ends the span of a tool call.
func EndToolCall(span trace.Span, failure *protocol.ToolError) {
	if failure != nil && span.IsRecording() {
		fail(span, string(failure.Code))
	}
	span.End()
}

func fail(span trace.Span, code string) {
	span.SetStatus(codes.Error, code)
	span.SetAttributes(attrCode.String(code))
}

// ModelCall is the span of a model call. One goroutine uses it.
type ModelCall struct {
	span    trace.Span
	answers bool
}

// Chunk notes a chunk of the answer. Only the first one is part of the trace.
func (c *ModelCall) Chunk() {
	if !c.answers {
		c.answers = true
		c.span.AddEvent("first chunk")
	}
}

// End ends the span. The text of a provider's error may quote the request, so the span shows only the code.
func (c *ModelCall) End(err error) {
	if err != nil && c.span.IsRecording() {
		var failure *llm.Error
		code := "stopped"
		if errors.As(err, &failure) {
			code = string(failure.Code)
		}
		fail(c.span, code)
	}
	c.span.End()
}
