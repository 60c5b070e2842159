package k8swatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// startSpan is the span of the start-up: the root of the trace of the initial
// lists. It ends when each kind was listed, or failed, for the first time, since
// a kind that stays forbidden would keep it open for ever.
type startSpan struct {
	span trace.Span

	mu   sync.Mutex
	open map[index.Kind]struct{} // kinds without an outcome
}

func startUp(tracer trace.Tracer, kinds []index.Kind) *startSpan {
	_, span := tracer.Start(context.Background(), tracing.SpanStart, trace.WithNewRoot())
	s := &startSpan{span: span, open: map[index.Kind]struct{}{}}
	for _, k := range kinds {
		s.open[k] = struct{}{}
	}
	return s
}

// outcome is a kind's first one; later ones are not of the start-up. It reports
// whether it was.
func (s *startSpan) outcome(kind index.Kind, state index.State) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, first := s.open[kind]; !first {
		return false
	}
	delete(s.open, kind)
	s.span.AddEvent(tracing.EventOutcome, trace.WithAttributes(tracing.AttrKind.String(string(kind)), tracing.AttrState.String(string(state))))
	if len(s.open) == 0 {
		s.span.End()
	}
	return true
}

// end is for a source that stops before that. A second end does nothing.
func (s *startSpan) end() { s.span.End() }

// listSpan is the span of one kind's list, from its first page to its Replace:
// the parent of all that the list brings. The first list of a kind is a child of
// the start-up; a later one is the root of a trace of its own, linked to it.
//
// A kind that fails is tried again and again: such a try is traced once something
// has come of it, lest failures push everything else out of sight.
type listSpan struct {
	kind   index.Kind
	tracer trace.Tracer
	start  *startSpan
	meters *meters

	mu      sync.Mutex
	running bool       // a list is going on
	span    trace.Span // of that list; nil while nothing has come of a further try
	last    trace.SpanContext
	began   time.Time
	pages   int
	later   bool   // not the first list any more
	failed  bool   // the newest list failed
	reason  string // why the kind is listed anew
}

// page notes a request. A first page begins a new list.
func (l *listSpan) page(first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first {
		l.cut(errAnew)
		l.running, l.began, l.pages = true, time.Now(), 0
		if !l.failed {
			l.begin()
		}
	}
	l.pages++
}

var errAnew = errors.New("the list began anew")

// came notes that the API server answers with objects.
func (l *listSpan) came() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running && l.span == nil {
		l.begin()
	}
}

// begin is called with mu held.
func (l *listSpan) begin() {
	ctx := context.Background()
	opts := []trace.SpanStartOption{trace.WithTimestamp(l.began), trace.WithAttributes(tracing.AttrKind.String(string(l.kind)))}
	if l.later {
		opts = append(opts, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: l.start.span.SpanContext()}))
	} else {
		ctx = trace.ContextWithSpan(ctx, l.start.span)
	}
	_, l.span = l.tracer.Start(ctx, tracing.SpanList, opts...)
	if l.later {
		reason := l.reason
		if reason == "" {
			reason = "the watch ended without a word"
		}
		l.span.AddEvent(tracing.EventRelist, trace.WithAttributes(tracing.AttrKind.String(string(l.kind)), tracing.AttrReason.String(reason)))
	}
	l.last = l.span.SpanContext()
}

// because notes why the kind will be listed anew.
func (l *listSpan) because(err error) {
	if err == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reason = err.Error()
}

// context of the list that is going on; invalid when there is none.
func (l *listSpan) context() trace.SpanContext {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.span == nil {
		return trace.SpanContext{}
	}
	return l.span.SpanContext()
}

// newest is the context of the newest list, for log lines.
func (l *listSpan) newest() trace.SpanContext {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// end ends a list that is complete and gives its context.
func (l *listSpan) end(objects int) trace.SpanContext {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reason = "" // it holds for every try until a list is complete
	if l.span == nil {
		return trace.SpanContext{}
	}
	l.span.SetAttributes(tracing.AttrObjects.Int(objects))
	l.finish(outcomeComplete)
	l.later, l.failed = true, false
	return l.last
}

// fail ends a list that was cut short, if there is one.
func (l *listSpan) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut(err)
}

// cut is called with mu held.
func (l *listSpan) cut(err error) {
	if !l.running || err == nil {
		return
	}
	if l.span != nil {
		l.span.RecordError(err)
		l.span.SetStatus(codes.Error, err.Error())
	}
	l.finish(outcomeFailed)
	if !errors.Is(err, errAnew) { // a streamed list that is given up for a paged one is no failure
		l.later, l.failed = true, true
	}
}

// finish is called with mu held.
func (l *listSpan) finish(outcome string) {
	ctx := context.Background()
	if l.span != nil {
		ctx = trace.ContextWithSpan(ctx, l.span)
		l.span.SetAttributes(tracing.AttrPages.Int(l.pages))
		l.span.End()
	}
	l.meters.listed(ctx, l.kind, outcome, time.Since(l.began))
	l.span, l.running = nil, false
}
