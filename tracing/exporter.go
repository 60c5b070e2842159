package tracing

import (
	"context"
	"fmt"
	"sync"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
)

// exporter is otlptrace's, but for the encoding: endpoints, headers, certificates,
// compression and retries are the client's.
type exporter struct {
	client otlptrace.Client

	mu     sync.Mutex
	encode encoder
	body   []byte
}

func startExporter(ctx context.Context, client otlptrace.Client) (*exporter, error) {
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return &exporter{client: client}, nil
}

var _ sdktrace.SpanExporter = (*exporter)(nil)

// Fields of the message ResourceSpans.
const (
	fieldResource   = 1
	fieldScopeSpans = 2
)

// ExportSpans sends the spans. All are of one scope and one resource, those of our
// provider. The message goes as bytes that are already encoded, which protobuf calls
// unknown fields, and sends as they are.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	resource := spans[0].Resource()
	e.encode.scope = e.encode.resource(e.encode.scope[:0], resource.Attributes())
	e.body = appendMessage(e.body[:0], fieldResource, e.encode.scope)
	e.encode.scope = e.encode.scopeSpans(e.encode.scope[:0], spans)
	e.body = appendMessage(e.body, fieldScopeSpans, e.encode.scope)
	m := &tracev1.ResourceSpans{SchemaUrl: resource.SchemaURL()}
	m.ProtoReflect().SetUnknown(e.body)
	if err := e.client.UploadTraces(ctx, []*tracev1.ResourceSpans{m}); err != nil {
		return fmt.Errorf("traces export: %w", err)
	}
	return nil
}

// Shutdown ends the client.
func (e *exporter) Shutdown(ctx context.Context) error { return e.client.Stop(ctx) }
