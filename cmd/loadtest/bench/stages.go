package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	stdhttp "net/http"
	"sync"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"turnstone/cmd/loadtest/figures"
)

// stageNames are the stages of a start, in their order, from the beginning of its request. The spans and events between
// which they are measured are those that package observe describes.
var stageNames = [...]string{
	"request until its transaction: session, idempotency key, limits",
	"transaction of two round trips",
	"until the call of the model: the turn's actor, the history of the conversation",
	"the model, until its first chunk has arrived",
	"first chunk until its text is stored and published",
	"all of them",
}

// stages are the milliseconds of each stage of one start.
type stages [len(stageNames)]float64

// stagesOf returns the stages of a start, and when its request began. ok is false if the spans of its trace do not have
// all of them, as those of other requests.
func stagesOf(spans []*trace.Span) (s stages, began time.Time, ok bool) {
	var request, start, turn, call *trace.Span
	for _, span := range spans {
		switch {
		case span.Kind == trace.Span_SPAN_KIND_SERVER:
			request = span
		case span.Name == "turn start":
			start = span
		case span.Name == "turn":
			turn = span
		case span.Name == "model call":
			call = span
		}
	}
	if request == nil || start == nil || turn == nil || call == nil {
		return s, began, false
	}
	chunk, text := eventOf(call, "first chunk"), eventOf(turn, "first text")
	at := []uint64{request.StartTimeUnixNano, start.StartTimeUnixNano, start.EndTimeUnixNano, call.StartTimeUnixNano, chunk, text}
	for i := range len(at) - 1 {
		s[i] = milliseconds(at[i], at[i+1])
	}
	s[len(s)-1] = milliseconds(at[0], text)
	return s, time.Unix(0, int64(at[0])), chunk != 0 && text != 0
}

// eventOf returns when an event of a span happened; 0: never.
func eventOf(span *trace.Span, name string) uint64 {
	for _, event := range span.Events {
		if event.Name == name {
			return event.TimeUnixNano
		}
	}
	return 0
}

func milliseconds(from, to uint64) float64 { return float64(int64(to)-int64(from)) / 1e6 }

// traces collects the spans that a service exports by OTLP over HTTP.
type traces struct {
	server *stdhttp.Server
	served chan error

	mu      sync.Mutex
	byTrace map[string][]*trace.Span // guarded by mu
	refused error                    // guarded by mu: what could not be read
}

// collectTraces starts a collector. settings make a service export every trace to it.
func collectTraces(ctx context.Context) (t *traces, settings []string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	t = &traces{byTrace: map[string][]*trace.Span{}, served: make(chan error, 1)}
	t.server = &stdhttp.Server{Handler: stdhttp.HandlerFunc(t.receive), ReadHeaderTimeout: time.Minute}
	go func() { t.served <- t.server.Serve(listener) }()
	return t, []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + listener.Addr().String(), "OTEL_EXPORTER_OTLP_COMPRESSION=none", "OTEL_TRACES_SAMPLER_ARG=1",
		"OTEL_BSP_MAX_QUEUE_SIZE=100000", // the default is less than the spans of a window
	}, nil
}

func (t *traces) receive(w stdhttp.ResponseWriter, r *stdhttp.Request) {
	exported := &collector.ExportTraceServiceRequest{}
	body, err := io.ReadAll(r.Body)
	if err = errors.Join(err, proto.Unmarshal(body, exported)); err != nil {
		w.WriteHeader(stdhttp.StatusBadRequest)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = errors.Join(t.refused, err)
	for _, resource := range exported.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				t.byTrace[string(span.TraceId)] = append(t.byTrace[string(span.TraceId)], span)
			}
		}
	}
}

// end stops the collector and returns the stages of the starts between two times, by stage.
func (t *traces) end(from, to time.Time) (all [len(stageNames)]figures.Samples, err error) {
	err = t.server.Close()
	if served := <-t.served; !errors.Is(served, stdhttp.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, spans := range t.byTrace {
		s, began, ok := stagesOf(spans)
		if !ok || began.Before(from) || began.After(to) {
			continue
		}
		for i, took := range s {
			all[i] = append(all[i], took)
		}
	}
	return all, errors.Join(err, t.refused)
}

// stages measures where the time until the first token goes: of starts beside the turns of P3, and of as many starts
// beside few. All requests are traced then, so the figures are a little higher than those of P3.
func (b startBench) stages(ctx context.Context) error {
	many := b.startingLoad()
	few := many
	few.live = max(1, many.live/100)
	few.lifetime = many.lifetime * time.Duration(few.live) / time.Duration(many.live)
	busy, client, err := b.tracedStarts(ctx, many)
	if err != nil {
		return err
	}
	idle, alone, err := b.tracedStarts(ctx, few)
	if err != nil {
		return err
	}
	table := figures.NewTable("stage of a start", fmt.Sprintf("beside %d turns, p50 ms", many.live), "p99", fmt.Sprintf("beside %d, p50 ms", few.live), "p99")
	for i, name := range stageNames {
		table.Add(name, busy[i].Quantile(0.5), busy[i].Quantile(0.99), idle[i].Quantile(0.5), idle[i].Quantile(0.99))
	}
	table.Add("as the client sees it, from the request it sends to the first token it reads", client.First.P50, client.First.P99, alone.First.P50, alone.First.P99)
	b.Say("%s", table.Aligned())
	b.report.Detail("P3", fmt.Sprintf("stages of %d and %d starts, from traces", len(busy[0]), len(idle[0])), table)
	return nil
}

// tracedStarts measures starts of a service that exports all traces.
func (b startBench) tracedStarts(ctx context.Context, l startLoad) (by [len(stageNames)]figures.Samples, w window, err error) {
	collected, settings, err := collectTraces(ctx)
	if err != nil {
		return by, w, err
	}
	var from time.Time
	err = b.site.RestartService(ctx, settings...)
	if err == nil {
		from = time.Now().Add(l.lifetime + warm)
		w, err = b.starting(ctx, true, l)
	}
	err = errors.Join(err, b.site.RestartService(ctx)) // a service that ends exports what it has
	by, ended := collected.end(from, from.Add(l.over))
	if err = errors.Join(err, ended); err == nil && len(by[0]) == 0 {
		err = errors.New("no start was traced")
	}
	return by, w, err
}
