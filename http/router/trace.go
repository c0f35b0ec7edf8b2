package router

import (
	"context"
	stdhttp "net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"turnstone/http/auth"
)

// startTrace starts the span of a request, and returns nil if it is not sampled.
//
// Every request starts a trace of its own. A traceparent header from outside is not its parent: a client could put its
// requests into traces of others, and force every one of them to be sampled, which costs the service CPU and storage.
// The header becomes a link, with which an operator still finds the request from the trace of a proxy or of a program
// that calls the API.
func startTrace(ctx context.Context, tracer trace.Tracer, r *stdhttp.Request) (context.Context, trace.Span) {
	if tracer == nil {
		return ctx, nil
	}
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer)}
	if from := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))); from.IsValid() {
		// The trace state is free text of the sender.
		options = append(options, trace.WithLinks(trace.Link{SpanContext: from.WithTraceState(trace.TraceState{})}))
	}
	traced, span := tracer.Start(ctx, "request", options...)
	if !span.SpanContext().IsSampled() {
		return ctx, nil
	}
	return traced, span
}

// endTrace ends the span of a request. Its attributes are those of the line in the log.
func (e *finishedRequest) endTrace(keys *auth.Keys) {
	if e.span == nil {
		return
	}
	e.span.SetName(e.method + " " + e.pattern)
	e.span.SetAttributes(
		attribute.String("http.request.method", e.method), attribute.String("http.route", e.pattern),
		attribute.Int("http.response.status_code", e.status), attribute.String("turnstone.request_id", e.requestID))
	if e.account != nil {
		e.span.SetAttributes(attribute.String("turnstone.account", keys.Pseudonym(*e.account)))
	}
	if e.status >= stdhttp.StatusInternalServerError {
		e.span.SetStatus(codes.Error, "")
	}
	e.span.End()
}
