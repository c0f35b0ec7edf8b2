package bench

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const millisecond = uint64(time.Millisecond)

// tracedStart returns the spans of a start that begins at a time in nanoseconds: its stages take 1, 2, 3, 4 and 5 ms.
func tracedStart(id string, at uint64) []*trace.Span {
	span := func(name string, from, to uint64) *trace.Span {
		return &trace.Span{TraceId: []byte(id), Name: name, StartTimeUnixNano: at + from*millisecond, EndTimeUnixNano: at + to*millisecond}
	}
	request := span("POST /chat", 0, 20)
	request.Kind = trace.Span_SPAN_KIND_SERVER
	turn, call := span("turn", 4, 90), span("model call", 6, 80)
	turn.Events = []*trace.Span_Event{{Name: "first text", TimeUnixNano: at + 15*millisecond}}
	call.Events = []*trace.Span_Event{{Name: "first chunk", TimeUnixNano: at + 10*millisecond}}
	return []*trace.Span{request, span("turn start", 1, 3), turn, span("commit", 11, 14), call}
}

func TestTheStagesOfAStartAddUpToItsFirstText(t *testing.T) {
	s, began, ok := stagesOf(tracedStart("a", 7))
	if want := (stages{1, 2, 3, 4, 5, 15}); !ok || s != want || began.UnixNano() != 7 {
		t.Errorf("%v from %d, %t; want %v from 7", s, began.UnixNano(), ok, want)
	}
}

func TestARequestWithoutEveryStageIsNoStart(t *testing.T) {
	for missing := range tracedStart("a", 7) {
		spans := tracedStart("a", 7)
		name := spans[missing].Name
		spans = append(spans[:missing], spans[missing+1:]...)
		if _, _, ok := stagesOf(spans); ok != (name == "commit") {
			t.Errorf("without the span %q: %t", name, ok)
		}
	}
	for i := range tracedStart("a", 7) {
		spans := tracedStart("a", 7)
		if spans[i].Events == nil {
			continue
		}
		spans[i].Events = nil
		if _, _, ok := stagesOf(spans); ok {
			t.Errorf("a start without the event of %q", spans[i].Name)
		}
	}
}

func TestOnlyStartsOfTheWindowAreCollected(t *testing.T) {
	collected, settings, err := collectTraces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address, _ := strings.CutPrefix(settings[0], "OTEL_EXPORTER_OTLP_ENDPOINT=")
	from := time.Unix(100, 0)
	for id, at := range map[string]time.Time{"before": from.Add(-1), "first": from, "last": from.Add(time.Second), "after": from.Add(time.Second + 1)} {
		var scopes []*trace.ScopeSpans
		for _, span := range tracedStart(id, uint64(at.UnixNano())) { // an export may split a trace
			scopes = append(scopes, &trace.ScopeSpans{Spans: []*trace.Span{span}})
		}
		body, err := proto.Marshal(&collector.ExportTraceServiceRequest{ResourceSpans: []*trace.ResourceSpans{{ScopeSpans: scopes}}})
		if err != nil {
			t.Fatal(err)
		}
		post(t, address+"/v1/traces", body, http.StatusOK)
	}
	all, err := collected.end(from, from.Add(time.Second))
	if err != nil || len(all[0]) != 2 || all[len(all)-1].Max() != 15 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestAnExportThatCannotBeReadFailsTheMeasurement(t *testing.T) {
	collected, settings, err := collectTraces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address, _ := strings.CutPrefix(settings[0], "OTEL_EXPORTER_OTLP_ENDPOINT=")
	post(t, address, []byte("no protobuf"), http.StatusBadRequest)
	if _, err := collected.end(time.Time{}, time.Now()); err == nil {
		t.Error("no error")
	}
}

func post(t *testing.T, address string, body []byte, status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != status {
		t.Fatalf("%d, %v", response.StatusCode, err)
	}
}
