package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/tracing"
)

// both gives a tracer of ours and one of the SDK's, with a ring each.
func both(t *testing.T) map[string]struct {
	trace.Tracer
	*tracing.Ring
} {
	t.Helper()
	ours, theirs := tracing.NewRing(8), tracing.NewRing(8)
	provider, _, err := tracing.Setup(t.Context(), tracing.Options{Ring: ours})
	if err != nil {
		t.Fatal(err)
	}
	return map[string]struct {
		trace.Tracer
		*tracing.Ring
	}{
		"ours":    {provider.Tracer(tracing.Scope), ours},
		"the SDK": {tracerInto(t, theirs), theirs},
	}
}

// Our spans do what the SDK's do: every case runs with both.
func TestSpansAreAsTheSDKs(t *testing.T) {
	for name, b := range both(t) {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(1000, 0)
			other := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})
			ctx, root := b.Start(context.Background(), "root", trace.WithTimestamp(at), trace.WithAttributes(attribute.Int("n", 1)), trace.WithLinks(trace.Link{SpanContext: other}))
			_, child := b.Start(ctx, "child", trace.WithTimestamp(at.Add(time.Second)))
			_, apart := b.Start(ctx, "apart", trace.WithNewRoot())
			if !root.IsRecording() || !root.SpanContext().IsSampled() || !child.SpanContext().IsValid() {
				t.Error("it is not recorded")
			}
			if child.SpanContext().TraceID() != root.SpanContext().TraceID() || apart.SpanContext().TraceID() == root.SpanContext().TraceID() {
				t.Error("a child is of its parent's trace, a new root is not")
			}
			child.SetAttributes(attribute.String("a", "1"))
			child.SetAttributes(attribute.String("b", "2"))
			child.AddEvent("happened", trace.WithAttributes(attribute.Bool("x", true)))
			child.AddLink(trace.Link{SpanContext: other})
			child.AddLink(trace.Link{}) // of nothing
			child.RecordError(errors.New("oops"))
			child.SetStatus(codes.Error, "failed")
			child.End(trace.WithTimestamp(at.Add(3 * time.Second)))
			child.End()
			child.SetAttributes(attribute.String("late", "3"))
			child.AddEvent("late")
			if child.IsRecording() {
				t.Error("it records after its end")
			}
			root.SetStatus(codes.Ok, "")
			root.SetStatus(codes.Error, "too late")
			root.End(trace.WithTimestamp(at.Add(4 * time.Second)))
			got, ok := b.Trace(root.SpanContext().TraceID().String())
			if !ok || len(got.Spans) != 2 {
				t.Fatalf("kept %+v", got)
			}
			r, c := got.Spans[0], got.Spans[1]
			if r.Attributes["n"] != "1" || len(r.Links) != 1 || r.Error != "" || r.Parent != "" || r.Duration != tracing.Duration(4*time.Second) {
				t.Errorf("root %+v", r)
			}
			if c.Parent != r.ID || c.Attributes["a"]+c.Attributes["b"]+c.Attributes["late"] != "12" || len(c.Links) != 1 || c.Error != "failed" || c.Duration != tracing.Duration(2*time.Second) {
				t.Errorf("child %+v", c)
			}
			if len(c.Events) != 2 || c.Events[0].Attributes["x"] != "true" || c.Events[1].Attributes["exception.message"] != "oops" {
				t.Errorf("events %+v", c.Events)
			}
		})
	}
}

// What is not sampled is not recorded, and neither are its children.
func TestWhatIsNotSampledStaysSo(t *testing.T) {
	ring := tracing.NewRing(8)
	provider, _, err := tracing.Setup(t.Context(), tracing.Options{Ring: ring, Sampler: sdktrace.ParentBased(sdktrace.NeverSample())})
	if err != nil {
		t.Fatal(err)
	}
	tracer := provider.Tracer(tracing.Scope)
	ctx, root := tracer.Start(context.Background(), "root")
	_, child := tracer.Start(ctx, "child")
	child.End()
	root.End()
	if root.IsRecording() || child.SpanContext().IsSampled() || child.SpanContext().TraceID() != root.SpanContext().TraceID() {
		t.Errorf("root %v, child %v", root.SpanContext(), child.SpanContext())
	}
	if got := ring.Traces(8); len(got) != 0 {
		t.Errorf("kept %+v", got)
	}
}

func TestDisabledMakesNoSpans(t *testing.T) {
	ring := tracing.NewRing(8)
	provider, shutdown, err := tracing.Setup(t.Context(), tracing.Options{Ring: ring, Disabled: true})
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer(tracing.Scope).Start(t.Context(), "x")
	span.End()
	if err := shutdown(t.Context()); err != nil || span.SpanContext().IsValid() || len(ring.Traces(1)) != 0 {
		t.Errorf("span %v, %v", span.SpanContext(), err)
	}
}

func TestSampler(t *testing.T) {
	for name, c := range map[string]struct{ sampler, arg, want string }{
		"nothing set":       {"", "", "ParentBased{root:AlwaysOnSampler"},
		"always":            {"always_on", "", "AlwaysOnSampler"},
		"never":             {"always_off", "", "AlwaysOffSampler"},
		"a part":            {"traceidratio", "0.25", "TraceIDRatioBased{0.25}"},
		"a part of parents": {"parentbased_traceidratio", "0.5", "ParentBased{root:TraceIDRatioBased{0.5}"},
		"no part said":      {"traceidratio", "", "TraceIDRatioBased{1}"},
		"no number":         {"traceidratio", "half", "error"},
		"more than all":     {"traceidratio", "2", "error"},
		"unknown":           {"jaeger_remote", "", "error"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tracing.Sampler(func(k string) string {
				return map[string]string{"OTEL_TRACES_SAMPLER": c.sampler, "OTEL_TRACES_SAMPLER_ARG": c.arg}[k]
			})
			if err != nil {
				if c.want != "error" {
					t.Error(err)
				}
				return
			}
			if !strings.HasPrefix(got.Description(), c.want) {
				t.Errorf("got %s, want %s", got.Description(), c.want)
			}
		})
	}
}

func TestArrivals(t *testing.T) {
	var none *tracing.Arrivals
	none.Note(1, time.Unix(1, 0))
	if _, ok := none.Of(1); ok {
		t.Error("nil remembers")
	}
	a := &tracing.Arrivals{}
	for r := uint64(1); r <= 20_000; r++ {
		a.Note(r, time.Unix(int64(r), 0))
	}
	if at, ok := a.Of(20_000); !ok || at != time.Unix(20_000, 0) {
		t.Errorf("the newest came at %v, %v", at, ok)
	}
	for _, r := range []uint64{0, 1, 20_001} {
		if _, ok := a.Of(r); ok {
			t.Errorf("revision %d is remembered", r)
		}
	}
}

func TestLogAttr(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	sampled := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{0xab}, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled})
	logger.Info("one", tracing.LogAttr(sampled))
	logger.Info("two", tracing.LogAttr(sampled.WithTraceFlags(0)))
	logger.Info("three", tracing.LogAttr(trace.SpanContext{}))
	if got := strings.Count(out.String(), "trace_id=ab"); got != 1 || strings.Count(out.String(), "trace_id") != 1 {
		t.Errorf("logged\n%s", out.String())
	}
}
