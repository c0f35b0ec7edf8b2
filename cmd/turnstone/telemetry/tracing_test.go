package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"go.uber.org/zap/zaptest"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector that accepts OTLP over HTTP.
func receiver(t *testing.T) (address string, received <-chan *otlp.ExportTraceServiceRequest) {
	t.Helper()
	requests := make(chan *otlp.ExportTraceServiceRequest, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		request := new(otlp.ExportTraceServiceRequest)
		if err := proto.Unmarshal(body, request); err != nil {
			t.Error(err)
		}
		requests <- request
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestTracesAreExportedOverOTLPWhenAnEndpointIsSet(t *testing.T) {
	address, received := receiver(t)
	environment := map[string]string{envEndpoint: address, envSamplerArg: "1", "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
	for name, value := range environment {
		t.Setenv(name, value)
	}
	tracing, err := StartTracing(t.Context(), environment, "abc", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracing.Tracer.Start(t.Context(), "request")
	span.End()
	if err := tracing.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	request := <-received
	if got := request.ResourceSpans[0].ScopeSpans[0].Spans[0].Name; got != "request" {
		t.Errorf("the span is %q", got)
	}
	attributes := request.ResourceSpans[0].Resource.String()
	for _, want := range []string{"service.name", "turnstone", "service.version", "abc"} {
		if !strings.Contains(attributes, want) {
			t.Errorf("the resource lacks %s: %s", want, attributes)
		}
	}
	if strings.Contains(attributes, "process.") || strings.Contains(attributes, "host.") {
		t.Errorf("the resource describes the process or the host computer: %s", attributes)
	}
}

func TestTracesAreOffUnlessAnEndpointIsSet(t *testing.T) {
	for name, environment := range map[string]map[string]string{
		"no endpoint": {envSamplerArg: "1"},
		"disabled":    {envEndpoint: "http://127.0.0.1:1", envDisabled: "true"},
		"no exporter": {envEndpoint: "http://127.0.0.1:1", envExporter: "none"},
	} {
		tracing, err := StartTracing(t.Context(), environment, "", zaptest.NewLogger(t))
		if err != nil || tracing.Tracer != nil || tracing.Close(t.Context()) != nil {
			t.Errorf("%s: %v, %v", name, tracing.Tracer, err)
		}
	}
}

func TestAnInvalidSamplingRatioIsReported(t *testing.T) {
	for _, ratio := range []string{"2", "-1", "half"} {
		if _, err := StartTracing(t.Context(), map[string]string{envEndpoint: "http://127.0.0.1:1", envSamplerArg: ratio}, "", zaptest.NewLogger(t)); err == nil {
			t.Errorf("%s was accepted", ratio)
		}
	}
}
