package tracing

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// provider makes the spans of one process, for a few processors of the SDK. It
// stands in for the SDK's own provider, whose spans cost three times as much: each
// is copied when it ends, and so are its attributes, twice. Under churn, with a
// garbage collector that runs often, that was most of what tracing cost (make
// trace-cost). Samplers, batching, retries and the exporters' clients are the SDK's.
//
// What it does not do: limits of attributes, events and links (whoever makes our
// spans bounds them), and traces that come from other processes.
type provider struct {
	embedded.TracerProvider
	sampler    sdktrace.Sampler
	processors []sdktrace.SpanProcessor
	resource   *resource.Resource
}

// Tracer implements trace.TracerProvider.
func (p *provider) Tracer(name string, opts ...trace.TracerOption) trace.Tracer {
	c := trace.NewTracerConfig(opts...)
	return &tracer{provider: p, scope: instrumentation.Scope{Name: name, Version: c.InstrumentationVersion(), SchemaURL: c.SchemaURL()}}
}

// shutdown exports what is queued.
func (p *provider) shutdown(ctx context.Context) error {
	var errs []error
	for _, x := range p.processors {
		errs = append(errs, x.Shutdown(ctx))
	}
	return errors.Join(errs...)
}

type tracer struct {
	embedded.Tracer
	provider *provider
	scope    instrumentation.Scope
}

// Start implements trace.Tracer.
func (t *tracer) Start(ctx context.Context, name string, opts ...trace.SpanStartOption) (context.Context, trace.Span) {
	c := trace.NewSpanStartConfig(opts...)
	if c.NewRoot() {
		ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	parent := trace.SpanContextFromContext(ctx)
	traceID := parent.TraceID()
	if !parent.IsValid() {
		parent = trace.SpanContext{}
		traceID = newTraceID()
	}
	own := trace.SpanContextConfig{TraceID: traceID, SpanID: newSpanID()}
	decision := t.provider.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: ctx, TraceID: traceID, Name: name, Kind: c.SpanKind(),
	}).Decision
	if decision != sdktrace.RecordAndSample {
		s := &dropped{context: trace.NewSpanContext(own)}
		return trace.ContextWithSpan(ctx, s), s
	}
	own.TraceFlags = trace.FlagsSampled
	s := &span{
		tracer: t, name: name, context: trace.NewSpanContext(own), parent: parent, kind: trace.ValidateSpanKind(c.SpanKind()),
		start: c.Timestamp(), attributes: c.Attributes(),
	}
	if s.start.IsZero() {
		s.start = time.Now()
	}
	for _, l := range c.Links() {
		s.AddLink(l)
	}
	return trace.ContextWithSpan(ctx, s), s
}

// dropped is a span that is not sampled. Its children are not, either.
type dropped struct {
	noop.Span
	context trace.SpanContext
}

// SpanContext implements trace.Span.
func (s *dropped) SpanContext() trace.SpanContext { return s.context }

func newTraceID() (id trace.TraceID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	}
	return id
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
