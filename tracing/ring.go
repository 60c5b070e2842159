package tracing

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Ring keeps the spans of the last traces in memory. It is a span processor:
// what it costs is one lock and one append for each span that ends.
//
// Invariant: it holds at most traces × 2·maxSpans spans, whatever happens.
type Ring struct {
	size int

	mu     sync.Mutex
	traces map[trace.TraceID]*kept
	order  []trace.TraceID // a circle; next is the oldest once it is full
	next   int
}

// maxSpans bounds one trace: a change that reaches a thousand Envoys shows the
// first of them.
const maxSpans = 64

// essential spans have room of their own: without its root, and without the lists
// that end last, a start-up of many pages could not be read.
func (t *kept) essential(s sdktrace.ReadOnlySpan) bool {
	return len(t.spans) < 2*maxSpans && (!s.Parent().IsValid() || s.Name() == SpanList)
}

type kept struct {
	spans   []sdktrace.ReadOnlySpan
	dropped int
}

// NewRing makes a ring for the given number of traces.
func NewRing(traces int) *Ring {
	return &Ring{size: traces, traces: make(map[trace.TraceID]*kept, traces)}
}

var _ sdktrace.SpanProcessor = (*Ring)(nil)

// OnStart does nothing: a span counts when it has ended.
func (r *Ring) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd keeps a span; the oldest trace makes room for a new one.
func (r *Ring) OnEnd(s sdktrace.ReadOnlySpan) {
	id := s.SpanContext().TraceID()
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.traces[id]
	if t == nil {
		t = r.admit(id)
	}
	if len(t.spans) >= maxSpans && !t.essential(s) {
		t.dropped++
		return
	}
	t.spans = append(t.spans, s)
}

func (r *Ring) admit(id trace.TraceID) *kept {
	if len(r.order) < r.size {
		r.order = append(r.order, id)
	} else {
		delete(r.traces, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % r.size
	}
	t := &kept{spans: make([]sdktrace.ReadOnlySpan, 0, 6)} // those of a small change
	r.traces[id] = t
	return t
}

// Shutdown keeps what was recorded: the status page outlives the provider.
func (r *Ring) Shutdown(context.Context) error { return nil }

// ForceFlush has nothing to flush.
func (r *Ring) ForceFlush(context.Context) error { return nil }

// Trace is what the ring knows of one trace.
type Trace struct {
	ID       string    `json:"id"`
	Start    time.Time `json:"start"`
	Duration Duration  `json:"durationSeconds"`
	Spans    []Span    `json:"spans"` // by start
	// Dropped spans are those beyond the ring's bound for one trace.
	Dropped int `json:"dropped,omitempty"`
}

// Span is one span of a Trace.
type Span struct {
	ID         string            `json:"id"`
	Parent     string            `json:"parent,omitempty"`
	Name       string            `json:"name"`
	Start      time.Time         `json:"start"`
	Duration   Duration          `json:"durationSeconds"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Events     []Event           `json:"events,omitempty"`
	// Links are the ids of other traces that the span belongs to.
	Links []string `json:"links,omitempty"`
	Error string   `json:"error,omitempty"`
}

// Event is a span event.
type Event struct {
	Name       string            `json:"name"`
	Time       time.Time         `json:"time"`
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Duration is a time span that JSON shows as seconds.
type Duration time.Duration

// MarshalJSON gives seconds.
func (d Duration) MarshalJSON() ([]byte, error) {
	return jsonSeconds(time.Duration(d)), nil
}

// String gives the duration as Go writes it.
func (d Duration) String() string { return time.Duration(d).String() }

// Traces gives up to limit traces, the one that started last first.
func (r *Ring) Traces(limit int) []Trace {
	r.mu.Lock()
	all := make([]kept, 0, len(r.traces))
	for _, t := range r.traces {
		all = append(all, *t) // spans beyond the copied length may follow; those within never change
	}
	r.mu.Unlock()
	slices.SortFunc(all, func(a, b kept) int { return cmp.Compare(b.start().UnixNano(), a.start().UnixNano()) })
	out := make([]Trace, 0, min(limit, len(all)))
	for _, t := range all[:min(limit, len(all))] {
		out = append(out, t.view())
	}
	return out
}

func (t *kept) start() time.Time {
	first := t.spans[0].StartTime()
	for _, s := range t.spans[1:] {
		if s.StartTime().Before(first) {
			first = s.StartTime()
		}
	}
	return first
}
