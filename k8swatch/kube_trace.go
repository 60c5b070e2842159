package k8swatch

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// listSpan is the span of one kind's list, from its first page to its Replace:
// the root of the trace of all that the list brings.
type listSpan struct {
	kind   index.Kind
	tracer trace.Tracer

	mu    sync.Mutex
	span  trace.Span // nil between lists
	pages int
}

// page notes a request. A first page begins a new list.
func (l *listSpan) page(first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first {
		l.finish()
		_, l.span = l.tracer.Start(context.Background(), tracing.SpanList, trace.WithNewRoot(),
			trace.WithAttributes(tracing.AttrKind.String(string(l.kind))))
		l.pages = 0
	}
	l.pages++
}

func (l *listSpan) context() trace.SpanContext {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.span == nil {
		return trace.SpanContext{}
	}
	return l.span.SpanContext()
}

// end ends a list that is complete and gives its context.
func (l *listSpan) end(objects int) trace.SpanContext {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.span == nil {
		return trace.SpanContext{}
	}
	l.span.SetAttributes(tracing.AttrObjects.Int(objects))
	c := l.span.SpanContext()
	l.finish()
	return c
}

// fail ends a list that was cut short, if there is one.
func (l *listSpan) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.span == nil || err == nil {
		return
	}
	l.span.RecordError(err)
	l.span.SetStatus(codes.Error, err.Error())
	l.finish()
}

// finish is called with mu held.
func (l *listSpan) finish() {
	if l.span != nil {
		l.span.SetAttributes(tracing.AttrPages.Int(l.pages))
		l.span.End()
		l.span = nil
	}
}
