package telemetry

import (
	"context"
	"fmt"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// The standard variables that this package reads itself. The exporter and the SDK read the others (OTEL_EXPORTER_OTLP_*,
// OTEL_BSP_*, OTEL_RESOURCE_ATTRIBUTES); docs/observability.md lists them.
const (
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envDisabled       = "OTEL_SDK_DISABLED"
	envSampler        = "OTEL_TRACES_SAMPLER"
	envSamplerArg     = "OTEL_TRACES_SAMPLER_ARG"
	envServiceName    = "OTEL_SERVICE_NAME"
)

const (
	// defaultRatio is the share of requests that are traced.
	defaultRatio = 0.05
	tracerName   = "turnstone"
)

// Tracing exports traces over OTLP.
type Tracing struct {
	Tracer   trace.Tracer // nil: traces are off
	provider *sdktrace.TracerProvider
}

// StartTracing starts the exporter, if the environment names an endpoint. Without one, nothing is traced. An endpoint that
// does not respond costs the service nothing but spans: they wait in a bounded queue and are dropped when it is full.
// build is the commit of the binary.
func StartTracing(ctx context.Context, environment map[string]string, build string, log *zap.Logger) (*Tracing, error) {
	endpoint := environment[envEndpoint] + environment[envTracesEndpoint]
	if endpoint == "" || environment[envDisabled] == "true" || environment[envExporter] == "none" {
		return &Tracing{}, nil
	}
	options, err := samplerOptions(environment)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting the exporter of traces: %w", err)
	}
	described, err := describeService(ctx, environment, build)
	if err != nil {
		return nil, fmt.Errorf("describing the service for traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces were not exported", zap.Error(err)) }))
	return NewTracing(append(options, sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))...), nil
}

// NewTracing returns Tracing with the options of a provider, for StartTracing and tests.
func NewTracing(options ...sdktrace.TracerProviderOption) *Tracing {
	provider := sdktrace.NewTracerProvider(options...)
	return &Tracing{Tracer: provider.Tracer(tracerName), provider: provider}
}

// samplerOptions returns the option of the sampler: parent-based, with a ratio for the first span of a trace. With
// OTEL_TRACES_SAMPLER, the SDK chooses the sampler.
func samplerOptions(environment map[string]string) ([]sdktrace.TracerProviderOption, error) {
	if environment[envSampler] != "" {
		return nil, nil
	}
	ratio := defaultRatio
	if text := environment[envSamplerArg]; text != "" {
		var err error
		if ratio, err = strconv.ParseFloat(text, 64); err != nil || ratio < 0 || ratio > 1 {
			return nil, fmt.Errorf("%s: invalid ratio %q (want for example 0.1)", envSamplerArg, text)
		}
	}
	return []sdktrace.TracerProviderOption{sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio)))}, nil
}

// describeService returns the attributes of all spans of this process: service.name, service.version, and what the
// environment adds. It names no host and no command line.
func describeService(ctx context.Context, environment map[string]string, build string) (*resource.Resource, error) {
	name := environment[envServiceName]
	if name == "" {
		name = tracerName
	}
	attributes := []attribute.KeyValue{attribute.String("service.name", name)}
	if build != "" {
		attributes = append(attributes, attribute.String("service.version", build))
	}
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithAttributes(attributes...))
}

// Close exports the spans that wait, until ctx ends.
func (t *Tracing) Close(ctx context.Context) error {
	if t.provider == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}
