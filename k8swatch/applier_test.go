package k8swatch

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/tracing"
)

// slowSink takes a second for each transaction, and notes when it began.
type slowSink struct {
	mu    sync.Mutex
	begin time.Time
	log   []string
}

func (s *slowSink) Apply(_ index.Cause, changes ...index.Change) index.Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, c := range changes {
		key, _ := describe(c)
		name := key.String()
		names = append(names, strings.TrimPrefix(name, "Service x/"))
	}
	s.log = append(s.log, fmt.Sprintf("%s %s", time.Since(s.begin), strings.Join(names, "+")))
	time.Sleep(time.Second)
	return index.Commit{}
}

func named(name string, eager bool) item {
	o := &index.Object{ObjectKey: index.ObjectKey{Kind: kinds.Service, Namespace: "x", Name: name}}
	return item{eager: eager, changes: []index.Change{index.Upsert{Object: o, InOrder: !eager}}}
}

func TestApplierBatches(t *testing.T) {
	const eager, event = true, false
	for _, c := range []struct {
		name string
		put  func(put func(string, bool))
		want string
	}{
		{"an event never waits, those that queue up meanwhile go together", func(put func(string, bool)) {
			put("a", event)
			time.Sleep(time.Millisecond)
			put("b", event)
			put("c", event)
		}, "0s a, 1s b+c"},
		{"what is eager waits for more", func(put func(string, bool)) {
			put("a", eager)
			time.Sleep(5 * time.Millisecond)
			put("b", eager)
		}, "20ms a+b"},
		{"but not when it is enough", func(put func(string, bool)) {
			for _, n := range []string{"a", "b", "c", "d"} {
				put(n, eager)
			}
		}, "0s a+b+c, 1.02s d"},
		{"nor when an event comes; the order stays", func(put func(string, bool)) {
			put("a", eager)
			time.Sleep(5 * time.Millisecond)
			put("b", event)
		}, "5ms a+b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				s := &slowSink{begin: time.Now()}
				a := newApplier(ctx, s, Options{Batch: 3}.withDefaults())
				done := make(chan struct{})
				go func() { defer close(done); a.run() }()
				synctest.Wait()
				c.put(func(name string, eager bool) { a.put(named(name, eager)) })
				time.Sleep(5 * time.Second)
				cancel()
				<-done
				if got := strings.Join(s.log, ", "); got != c.want {
					t.Errorf("%s\nwant %s", got, c.want)
				}
			})
		})
	}
}

// A watch event is the root of its trace, the commit is in it, and the commit is
// the cause that the index passes on. What a list brings is in the list's trace.
func TestTraces(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	w := newKubeWorld(t)
	w.api.put(svc("listed", 80))
	o := w.options()
	o.Tracer = provider.Tracer(tracing.Scope)
	k, err := NewKube(w.api.config(), w.world, o)
	must(t, err)
	stop := w.run(k)
	w.until("observed", allObserved)
	w.api.put(svc("event", 80))
	s := w.until("event", func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", "event") })
	stop()

	cause := causeOf(t, s)
	spans := recorder.Ended()
	commit := spanOf(t, spans, func(s sdktrace.ReadOnlySpan) bool { return s.SpanContext().Equal(cause) })
	root := spanOf(t, spans, func(s sdktrace.ReadOnlySpan) bool { return s.SpanContext().SpanID() == commit.Parent().SpanID() })
	if commit.Name() != tracing.SpanCommit || root.Name() != tracing.SpanWatchEvent || root.Parent().IsValid() {
		t.Errorf("%s in %s in %v", commit.Name(), root.Name(), root.Parent())
	}
	if got := fmt.Sprint(root.Attributes()); !strings.Contains(got, "Service x/event") || !strings.Contains(got, "ADDED") {
		t.Errorf("attributes %s", got)
	}
	listed := spanOf(t, spans, func(s sdktrace.ReadOnlySpan) bool {
		return s.Name() == tracing.SpanWatchEvent && strings.Contains(fmt.Sprint(s.Attributes()), "Service x/listed")
	})
	lists := slices.DeleteFunc(spans, func(s sdktrace.ReadOnlySpan) bool { return s.Name() != tracing.SpanList })
	if len(lists) != len(kinds.All) {
		t.Errorf("%d lists", len(lists))
	}
	in := func(c trace.SpanContext) bool {
		linked := slices.ContainsFunc(listed.Links(), func(l sdktrace.Link) bool { return l.SpanContext.TraceID() == c.TraceID() })
		return linked || listed.SpanContext().TraceID() == c.TraceID()
	}
	if !slices.ContainsFunc(lists, func(s sdktrace.ReadOnlySpan) bool { return in(s.SpanContext()) }) {
		t.Error("what was listed is in no list's trace")
	}
}

func causeOf(t *testing.T, s *index.Snapshot) index.Cause {
	t.Helper()
	log, ok := s.Changes(s.Revision() - 1)
	if !ok || len(log) != 1 {
		t.Fatalf("log %v %v", log, ok)
	}
	return log[0].Cause
}

func spanOf(t *testing.T, spans []sdktrace.ReadOnlySpan, is func(sdktrace.ReadOnlySpan) bool) sdktrace.ReadOnlySpan {
	t.Helper()
	i := slices.IndexFunc(spans, is)
	if i < 0 {
		t.Fatal("no such span")
	}
	return spans[i]
}
