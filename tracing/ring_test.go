package tracing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/tracing"
)

// tracerInto gives a tracer whose spans end in the ring.
func tracerInto(t *testing.T, r *tracing.Ring) trace.Tracer {
	t.Helper()
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(r))
	t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
	return p.Tracer(tracing.Scope)
}

func TestRingShowsOneChangeAsOneTrace(t *testing.T) {
	r := tracing.NewRing(4)
	tracer := tracerInto(t, r)
	began := time.Unix(100, 0)

	ctx, event := tracer.Start(context.Background(), tracing.SpanWatchEvent, trace.WithTimestamp(began),
		trace.WithAttributes(tracing.AttrKind.String("Service"), tracing.AttrNamespace.String("shop")))
	_, response := tracer.Start(ctx, tracing.SpanResponse, trace.WithTimestamp(began.Add(time.Second)))
	response.AddEvent(tracing.EventWithheld, trace.WithAttributes(tracing.AttrMissing.StringSlice([]string{"Secret"})))
	response.SetStatus(codes.Error, "rejected")
	response.End(trace.WithTimestamp(began.Add(3 * time.Second)))
	event.End(trace.WithTimestamp(began.Add(2 * time.Second)))

	got := r.Traces(10)
	if len(got) != 1 || len(got[0].Spans) != 2 {
		t.Fatalf("want one trace of two spans, got %+v", got)
	}
	root, child := got[0].Spans[0], got[0].Spans[1]
	if root.Name != tracing.SpanWatchEvent || root.Attributes["k8s.namespace.name"] != "shop" {
		t.Errorf("root: %+v", root)
	}
	if child.Parent != root.ID || child.Error != "rejected" || child.Events[0].Attributes["holdfast.kinds.missing"] != `["Secret"]` {
		t.Errorf("child: %+v", child)
	}
	// The response outlives the event that caused it: the trace lasts until its end.
	if got[0].Duration != tracing.Duration(3*time.Second) {
		t.Errorf("duration %s, want 3s", got[0].Duration)
	}
	text, err := json.Marshal(got[0])
	if err != nil || !strings.Contains(string(text), `"durationSeconds":3,`) {
		t.Errorf("as JSON: %s, %v", text, err)
	}
}

func TestRingForgetsTheOldestTrace(t *testing.T) {
	r := tracing.NewRing(3)
	tracer := tracerInto(t, r)
	for i := range 5 {
		at := trace.WithTimestamp(time.Unix(int64(i), 0))
		_, s := tracer.Start(context.Background(), fmt.Sprintf("change %d", i), at)
		s.End()
	}
	var names []string
	for _, x := range r.Traces(10) {
		names = append(names, x.Spans[0].Name)
	}
	if got := strings.Join(names, ", "); got != "change 4, change 3, change 2" {
		t.Errorf("kept: %s", got)
	}
	if got := len(r.Traces(2)); got != 2 {
		t.Errorf("with a limit of 2: %d traces", got)
	}
}

// Invariant: a change that reaches thousands of Envoys takes no more room than
// any other.
func TestRingBoundsOneTrace(t *testing.T) {
	r := tracing.NewRing(2)
	tracer := tracerInto(t, r)
	ctx, root := tracer.Start(context.Background(), tracing.SpanWatchEvent)
	for range 5000 {
		_, s := tracer.Start(ctx, tracing.SpanResponse)
		s.End()
	}
	root.End()
	got := r.Traces(1)[0]
	if len(got.Spans) > 65 || got.Dropped+len(got.Spans) != 5001 {
		t.Errorf("%d spans kept, %d dropped; want at most 64 and the root, and 5001 together", len(got.Spans), got.Dropped)
	}
}

// The root and the lists of a start-up end last, after thousands of pages.
func TestRingKeepsWhatHoldsATraceTogether(t *testing.T) {
	r := tracing.NewRing(2)
	tracer := tracerInto(t, r)
	ctx, root := tracer.Start(context.Background(), tracing.SpanStart)
	list, listed := tracer.Start(ctx, tracing.SpanList)
	for range 500 {
		_, s := tracer.Start(list, tracing.SpanWatchEvent)
		s.End()
	}
	listed.End()
	root.End()
	got := r.Traces(1)[0]
	if got.Spans[0].Name != tracing.SpanStart || got.Spans[1].Name != tracing.SpanList {
		t.Errorf("the trace begins with %s, %s", got.Spans[0].Name, got.Spans[1].Name)
	}
}
