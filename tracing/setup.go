package tracing

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Protocol says how spans are exported, in the words of
// OTEL_EXPORTER_OTLP_PROTOCOL.
type Protocol string

// The protocols. The empty one exports nothing.
const (
	NoExport     Protocol = ""
	GRPC         Protocol = "grpc"
	HTTPProtobuf Protocol = "http/protobuf"
)

// Options for Setup.
type Options struct {
	// Version is ours, for the resource attribute service.version.
	Version string
	// Ring, when not nil, keeps the last traces.
	Ring *Ring
	// Export says how to export; where to is in OTEL_EXPORTER_OTLP_*, which the
	// exporter reads.
	Export Protocol
	// Sampler says which traces are recorded; nil: every one. See the function Sampler.
	Sampler sdktrace.Sampler
	// Disabled makes no spans at all: OTEL_SDK_DISABLED=true.
	Disabled bool
}

// Disabled says whether the environment turns tracing off altogether.
func Disabled(getenv func(string) string) bool { return getenv("OTEL_SDK_DISABLED") == "true" }

// ExportProtocol says whether and how the environment asks for an export:
// an endpoint must be named, OTEL_TRACES_EXPORTER=none or OTEL_SDK_DISABLED=true
// turn it off, and the protocol is http/protobuf unless said otherwise.
func ExportProtocol(getenv func(string) string) (Protocol, error) {
	if Disabled(getenv) || getenv("OTEL_TRACES_EXPORTER") == "none" {
		return NoExport, nil
	}
	if getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		return NoExport, nil
	}
	name := "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	if getenv(name) == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
	}
	switch p := Protocol(getenv(name)); p {
	case "":
		return HTTPProtobuf, nil
	case GRPC, HTTPProtobuf:
		return p, nil
	default:
		return NoExport, fmt.Errorf("%s: %q is neither grpc nor http/protobuf", name, string(p))
	}
}

// Setup makes the provider of all tracers. The function that it gives exports what is still
// queued, for as long as its context lasts.
func Setup(ctx context.Context, o Options) (trace.TracerProvider, func(context.Context) error, error) {
	if o.Disabled {
		return noop.NewTracerProvider(), func(context.Context) error { return nil }, nil
	}
	res, err := resourceOf(ctx, o.Version)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	p := &provider{resource: res, sampler: o.Sampler}
	if p.sampler == nil {
		p.sampler = sdktrace.AlwaysSample()
	}
	if o.Ring != nil {
		p.processors = append(p.processors, o.Ring)
	}
	if o.Export != NoExport {
		exporter, err := newExporter(ctx, o.Export)
		if err != nil {
			return nil, nil, fmt.Errorf("tracing: OTLP exporter: %w", err)
		}
		p.processors = append(p.processors, sdktrace.NewBatchSpanProcessor(exporter))
	}
	return p, p.shutdown, nil
}

// resourceOf: the environment (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES)
// comes last, so it wins.
func resourceOf(ctx context.Context, version string) (*resource.Resource, error) {
	return resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("holdfast"), semconv.ServiceVersion(version)),
		resource.WithFromEnv(),
	)
}

func newExporter(ctx context.Context, p Protocol) (sdktrace.SpanExporter, error) {
	if p == GRPC {
		return startExporter(ctx, otlptracegrpc.NewClient())
	}
	return startExporter(ctx, otlptracehttp.NewClient())
}
