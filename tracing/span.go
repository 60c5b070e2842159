package tracing

import (
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// span is a span that is recorded, and once it has ended, what processors get of
// it: nothing is copied.
//
// Invariant: it does not change after its end.
type span struct {
	// ReadOnlySpan is nil: it lends the one method that no other package can have.
	sdktrace.ReadOnlySpan
	trace.Span // nil, likewise

	// Set by Start.
	tracer          *tracer
	name            string
	context, parent trace.SpanContext
	kind            trace.SpanKind
	start           time.Time

	mu         sync.Mutex // guards what follows
	end        time.Time
	attributes []attribute.KeyValue
	events     []sdktrace.Event
	links      []sdktrace.Link
	status     sdktrace.Status
}

var (
	_ trace.Span            = (*span)(nil)
	_ sdktrace.ReadOnlySpan = (*span)(nil)
)

// open runs f unless the span has ended.
func (s *span) open(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.IsZero() {
		f()
	}
}

// End implements trace.Span. A second end does nothing.
func (s *span) End(opts ...trace.SpanEndOption) {
	c := trace.NewSpanEndConfig(opts...)
	at := c.Timestamp()
	if at.IsZero() {
		at = time.Now()
	}
	first := false
	s.open(func() { s.end, first = at, true })
	if !first {
		return
	}
	for _, p := range s.tracer.provider.processors {
		p.OnEnd(s)
	}
}

// SetAttributes implements trace.Span. A list that is given as a whole is taken
// over, so its giver does not use it again.
func (s *span) SetAttributes(list ...attribute.KeyValue) {
	s.open(func() {
		if len(s.attributes) == 0 {
			s.attributes = list
			return
		}
		s.attributes = append(s.attributes[:len(s.attributes):len(s.attributes)], list...)
	})
}

// AddEvent implements trace.Span.
func (s *span) AddEvent(name string, opts ...trace.EventOption) {
	c := trace.NewEventConfig(opts...)
	s.open(func() {
		s.events = append(s.events, sdktrace.Event{Name: name, Time: c.Timestamp(), Attributes: c.Attributes()})
	})
}

// AddLink implements trace.Span.
func (s *span) AddLink(l trace.Link) {
	if !l.SpanContext.IsValid() {
		return
	}
	s.open(func() { s.links = append(s.links, sdktrace.Link{SpanContext: l.SpanContext, Attributes: l.Attributes}) })
}

// RecordError implements trace.Span: an event, by the semantic conventions.
func (s *span) RecordError(err error, opts ...trace.EventOption) {
	if err == nil {
		return
	}
	s.AddEvent(semconv.ExceptionEventName, append(opts, trace.WithAttributes(
		semconv.ExceptionType(reflect.TypeOf(err).String()), semconv.ExceptionMessage(err.Error())))...)
}

// SetStatus implements trace.Span. The last one counts, but for "ok", which stays.
func (s *span) SetStatus(code codes.Code, description string) {
	s.open(func() {
		if s.status.Code == codes.Ok {
			return
		}
		s.status = sdktrace.Status{Code: code}
		if code == codes.Error {
			s.status.Description = description
		}
	})
}

// SetName implements trace.Span. Ours have the name that they began with.
func (s *span) SetName(string) {}

// IsRecording implements trace.Span.
func (s *span) IsRecording() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end.IsZero()
}

// SpanContext implements trace.Span and sdktrace.ReadOnlySpan.
func (s *span) SpanContext() trace.SpanContext { return s.context }

// TracerProvider implements trace.Span.
func (s *span) TracerProvider() trace.TracerProvider { return s.tracer.provider }

// The rest is what processors and exporters read, when the span has ended.

// Name implements sdktrace.ReadOnlySpan.
func (s *span) Name() string { return s.name }

// Parent implements sdktrace.ReadOnlySpan.
func (s *span) Parent() trace.SpanContext { return s.parent }

// SpanKind implements sdktrace.ReadOnlySpan.
func (s *span) SpanKind() trace.SpanKind { return s.kind }

// StartTime implements sdktrace.ReadOnlySpan.
func (s *span) StartTime() time.Time { return s.start }

// EndTime implements sdktrace.ReadOnlySpan.
func (s *span) EndTime() time.Time { return s.end }

// Attributes implements sdktrace.ReadOnlySpan.
func (s *span) Attributes() []attribute.KeyValue { return s.attributes }

// Links implements sdktrace.ReadOnlySpan.
func (s *span) Links() []sdktrace.Link { return s.links }

// Events implements sdktrace.ReadOnlySpan.
func (s *span) Events() []sdktrace.Event { return s.events }

// Status implements sdktrace.ReadOnlySpan.
func (s *span) Status() sdktrace.Status { return s.status }

// InstrumentationScope implements sdktrace.ReadOnlySpan.
func (s *span) InstrumentationScope() instrumentation.Scope { return s.tracer.scope }

// InstrumentationLibrary implements sdktrace.ReadOnlySpan.
func (s *span) InstrumentationLibrary() instrumentation.Scope { return s.tracer.scope }

// Resource implements sdktrace.ReadOnlySpan.
func (s *span) Resource() *resource.Resource { return s.tracer.provider.resource }

// DroppedAttributes implements sdktrace.ReadOnlySpan.
func (s *span) DroppedAttributes() int { return 0 }

// DroppedLinks implements sdktrace.ReadOnlySpan.
func (s *span) DroppedLinks() int { return 0 }

// DroppedEvents implements sdktrace.ReadOnlySpan.
func (s *span) DroppedEvents() int { return 0 }

// ChildSpanCount implements sdktrace.ReadOnlySpan.
func (s *span) ChildSpanCount() int { return 0 }
