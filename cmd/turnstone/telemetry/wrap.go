package telemetry

import (
	"context"
	"errors"
	"io"
	"time"

	"turnstone/actors/llm"
	"turnstone/actors/toolbox"
	"turnstone/persistence/limits"
	"turnstone/protocol"
	"turnstone/providers/scanner"
)

// outcomeStopped is the outcome of a call that the service stopped: the turn was cancelled, or the node stops.
const outcomeStopped = "stopped"

// Model returns a model that is measured.
func (m *Metrics) Model(model llm.Model) llm.Model { return measuredModel{model, m} }

type measuredModel struct {
	llm.Model
	metrics *Metrics
}

// Stream implements llm.Model.
func (m measuredModel) Stream(ctx context.Context, request llm.Request, emit func(llm.Chunk) error) error {
	began, provider, answers := time.Now(), m.Family(), false
	err := m.Model.Stream(ctx, request, func(chunk llm.Chunk) error {
		if !answers {
			answers = true
			m.metrics.modelFirst.WithLabelValues(provider).Observe(time.Since(began).Seconds())
		}
		return emit(chunk)
	})
	m.metrics.modelCalls.WithLabelValues(provider, modelOutcome(ctx, err)).Observe(time.Since(began).Seconds())
	return err
}

// modelOutcome returns the code of an error, which is a constant of the implementations of llm.Model.
func modelOutcome(ctx context.Context, err error) string {
	var failure *llm.Error
	switch {
	case err == nil:
		return outcomeOK
	case ctx.Err() != nil:
		return outcomeStopped
	case errors.As(err, &failure):
		return string(failure.Code)
	}
	return outcomeError
}

// Tools returns tools that are measured.
func (m *Metrics) Tools(all []toolbox.Tool) []toolbox.Tool {
	measured := make([]toolbox.Tool, 0, len(all))
	for _, tool := range all {
		measured = append(measured, measuredTool{tool, m})
	}
	return measured
}

type measuredTool struct {
	toolbox.Tool
	metrics *Metrics
}

// Run implements toolbox.Tool.
func (t measuredTool) Run(ctx context.Context, call *toolbox.Call) (result toolbox.Result, err error) {
	began := time.Now()
	done := "panic"
	defer func() { // a panic is a failure of the tool, see toolbox.Run
		t.metrics.toolCalls.WithLabelValues(t.Spec().Name, done).Observe(time.Since(began).Seconds())
	}()
	result, err = t.Tool.Run(ctx, call)
	var shown *toolbox.Failure
	switch {
	case err == nil:
		done = outcomeOK
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		done = string(protocol.ToolCallTimeout)
	case ctx.Err() != nil:
		done = outcomeStopped
	case errors.As(err, &shown):
		done = string(shown.Code)
	default:
		done = outcomeError
	}
	return result, err
}

// Scanner returns a scanner that is measured.
func (m *Metrics) Scanner(engine scanner.Scanner) scanner.Scanner { return measuredScanner{engine, m} }

type measuredScanner struct {
	scanner.Scanner
	metrics *Metrics
}

// Scan implements scanner.Scanner.
func (s measuredScanner) Scan(ctx context.Context, body io.Reader, size int64) (scanner.Verdict, error) {
	began := time.Now()
	verdict, err := s.Scanner.Scan(ctx, body, size)
	name := outcomeError
	switch {
	case ctx.Err() != nil:
		name = outcomeStopped
	case err != nil:
	case verdict.Clean:
		name = "clean"
	default:
		name = string(verdict.Refusal)
	}
	s.metrics.scans.WithLabelValues(name).Observe(time.Since(began).Seconds())
	return verdict, err
}

// Limiter decides whether a request is within a limit.
type Limiter interface {
	Take(ctx context.Context, bucket, key string) (limits.Decision, error)
}

// Limiter returns a limiter that is measured.
func (m *Metrics) Limiter(limiter Limiter) Limiter { return measuredLimiter{limiter, m} }

type measuredLimiter struct {
	limiter Limiter
	metrics *Metrics
}

// Take implements Limiter.
func (l measuredLimiter) Take(ctx context.Context, bucket, key string) (limits.Decision, error) {
	began := time.Now()
	decision, err := l.limiter.Take(ctx, bucket, key)
	l.metrics.limiter.Observe(time.Since(began).Seconds())
	if err != nil {
		l.metrics.limiterErrors.WithLabelValues(bucket).Inc()
	}
	return decision, err
}
