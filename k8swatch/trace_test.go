package k8swatch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/tracing"
)

// untraced is the span of lists that nobody looks at.
func untraced(t *testing.T) *listSpan {
	t.Helper()
	m, err := newMeters(metricnoop.NewMeterProvider().Meter(""))
	must(t, err)
	tracer := tracenoop.NewTracerProvider().Tracer("")
	return &listSpan{tracer: tracer, start: startUp(tracer, nil), meters: m}
}

// traced is a kubeWorld of which everything is seen.
type traced struct {
	*kubeWorld
	ring     *tracing.Ring
	metrics  tracing.Metrics
	arrivals *tracing.Arrivals
}

func startTraced(t *testing.T, prepare func(w *kubeWorld)) *traced {
	t.Helper()
	w := &traced{kubeWorld: newKubeWorld(t), ring: tracing.NewRing(64), arrivals: &tracing.Arrivals{}}
	prepare(w.kubeWorld)
	provider, _, err := tracing.Setup(t.Context(), tracing.Options{Ring: w.ring})
	must(t, err)
	w.metrics, err = tracing.NewMetrics()
	must(t, err)
	o := w.options()
	o.PageSize, o.Tracer, o.Meter, o.Arrivals = 2, provider.Tracer(tracing.Scope), w.metrics.Meter, w.arrivals
	w.kube, err = NewKube(w.api.config(), w.world, o)
	must(t, err)
	w.run(w.kube)
	return w
}

// trace waits for a trace that satisfies the condition.
func (w *traced) trace(what string, is func(tracing.Trace) bool) tracing.Trace {
	w.t.Helper()
	timeout, tick := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		for _, x := range w.ring.Traces(64) {
			if is(x) {
				return x
			}
		}
		select {
		case <-tick.C:
		case <-timeout:
			w.t.Fatalf("no trace of %s among %+v", what, w.ring.Traces(64))
		}
	}
}

func spansOf(x tracing.Trace, name string) []tracing.Span {
	var out []tracing.Span
	for _, s := range x.Spans {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

func eventsOf(s tracing.Span, name string) []map[string]string {
	var out []map[string]string
	for _, e := range s.Events {
		if e.Name == name {
			out = append(out, e.Attributes)
		}
	}
	return out
}

// The start-up is one trace, with a list for each kind and all that it brought; a
// kind that is forbidden does not keep it open.
func TestStartUpIsOneTrace(t *testing.T) {
	w := startTraced(t, func(w *kubeWorld) {
		w.api.streams = false
		for _, n := range []string{"a", "b", "c"} {
			w.api.put(svc(n, 80))
		}
		w.api.refuse["secrets"] = func(*http.Request) int { return http.StatusForbidden }
	})
	w.until("all but one", func(s *index.Snapshot) bool {
		return s.Kind(kinds.Secret).State == index.Forbidden && s.Kind(kinds.Service).Complete()
	})
	x := w.trace("the start-up", func(x tracing.Trace) bool { return len(spansOf(x, tracing.SpanStart)) == 1 })
	root := spansOf(x, tracing.SpanStart)[0]
	outcomes := map[string]string{}
	for _, e := range eventsOf(root, tracing.EventOutcome) {
		outcomes[e["holdfast.kind"]] = e["holdfast.kind.state"]
	}
	if len(outcomes) != len(kinds.All) || outcomes["Secret"] != "forbidden" || outcomes["Service"] != "observed" {
		t.Errorf("outcomes %v", outcomes)
	}
	lists := map[string]tracing.Span{}
	for _, s := range spansOf(x, tracing.SpanList) {
		if s.Parent != root.ID {
			t.Errorf("list of %s is not below the start", s.Attributes["holdfast.kind"])
		}
		lists[s.Attributes["holdfast.kind"]] = s
	}
	if len(lists) != len(kinds.All) || lists["Secret"].Error == "" {
		t.Errorf("lists of %d kinds, Secret's failed with %q", len(lists), lists["Secret"].Error)
	}
	if s := lists["Service"]; s.Attributes["holdfast.objects"] != "3" || s.Attributes["holdfast.pages"] != "2" {
		t.Errorf("list of Service: %v", s.Attributes)
	}
	if !strings.Contains(w.logged(), "kind=Secret") || !strings.Contains(w.logged(), "trace_id="+x.ID) {
		t.Errorf("the log does not name the trace:\n%s", w.logged())
	}
}

// A kind that keeps failing does not fill the ring with its tries.
func TestFailingTriesAreNotTraced(t *testing.T) {
	w := startTraced(t, func(w *kubeWorld) {
		w.api.refuse["secrets"] = func(*http.Request) int { return http.StatusForbidden }
	})
	w.trace("the start-up", func(x tracing.Trace) bool { return len(spansOf(x, tracing.SpanStart)) == 1 })
	tried := func(n int) func() bool { // lists of Secrets, counted by their metric
		return func() bool {
			return w.counted(`holdfast_list_duration_seconds_count{kind="Secret",outcome="failed"}`) >= n
		}
	}
	w.poll("some tries", tried(3))
	if got := len(w.ring.Traces(64)); got != 1 {
		t.Errorf("%d traces of a start-up and failing tries", got)
	}
	// The one that succeeds is traced, and says why there was another.
	w.api.do(func() { delete(w.api.refuse, "secrets") })
	x := w.trace("the list at last", func(x tracing.Trace) bool { return x.Spans[0].Name == tracing.SpanList })
	relist := eventsOf(x.Spans[0], tracing.EventRelist)
	if len(relist) != 1 || relist[0]["holdfast.kind"] != "Secret" || !strings.Contains(relist[0]["holdfast.reason"], "refused") {
		t.Errorf("events %+v", x.Spans[0].Events)
	}
	if len(x.Spans[0].Links) != 1 {
		t.Errorf("it does not link to the start-up: %v", x.Spans[0].Links)
	}
}

// A watch event is a trace, with its object; the time of its arrival is noted.
func TestAWatchEventIsATrace(t *testing.T) {
	w := startTraced(t, func(*kubeWorld) {})
	w.until("observed", allObserved)
	v := w.api.put(svc("a", 80))
	s := w.until("the event", frontierIs(kinds.Service, v))
	x := w.trace("the event", func(x tracing.Trace) bool { return x.Spans[0].Attributes["holdfast.event.type"] == "ADDED" })
	for key, want := range map[string]string{
		"holdfast.object.name": `["Service x/a"]`, "holdfast.kind": "Service", "k8s.namespace.name": "x",
		"holdfast.object.resource_version": fmt.Sprint(v), "holdfast.events": "1",
	} {
		if got := x.Spans[0].Attributes[key]; got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if len(x.Spans) != 2 || x.Spans[1].Name != tracing.SpanCommit || x.Spans[1].Parent != x.Spans[0].ID {
		t.Errorf("spans %+v", x.Spans)
	}
	if _, ok := w.arrivals.Of(uint64(s.Revision())); !ok {
		t.Error("when it came is not noted")
	}
}

// A watch that the API server cannot go on with is a relist, with its words.
func TestARelistSaysWhy(t *testing.T) {
	w := startTraced(t, func(*kubeWorld) {})
	w.until("observed", allObserved)
	w.api.do(func() { w.api.down = true })
	w.api.cut()
	w.until("failing", kindIs(kinds.Service, index.Failing))
	w.api.put(svc("new", 80))
	w.api.forget()
	w.api.do(func() { w.api.down = false })
	w.until("relisted", func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", "new") })
	x := w.trace("the relist", func(x tracing.Trace) bool {
		return x.Spans[0].Name == tracing.SpanList && x.Spans[0].Attributes["holdfast.kind"] == "Service" && len(eventsOf(x.Spans[0], tracing.EventRelist)) == 1
	})
	if reason := eventsOf(x.Spans[0], tracing.EventRelist)[0]["holdfast.reason"]; reason == "" {
		t.Error("no reason is given")
	}
}

func TestSourceMetrics(t *testing.T) {
	w := startTraced(t, func(*kubeWorld) {})
	w.until("observed", allObserved)
	w.poll("metrics", func() bool {
		return w.counted(`holdfast_list_duration_seconds_count{kind="Service",outcome="complete"}`) == 1 && strings.Contains(w.scrape(), `holdfast_kind_frontier_age_seconds{kind="Service"}`)
	})
}

func (w *traced) scrape() string {
	rec := httptest.NewRecorder()
	w.metrics.Handler.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return rec.Body.String()
}

// counted gives the value of one series; 0 when there is none.
func (w *traced) counted(series string) int {
	for line := range strings.Lines(w.scrape()) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), series+" "); ok {
			n, err := strconv.Atoi(value)
			must(w.t, err)
			return n
		}
	}
	return 0
}

func (w *traced) poll(what string, is func() bool) {
	w.t.Helper()
	timeout, tick := time.After(10*time.Second), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-timeout:
			w.t.Fatalf("never %s:\n%s", what, w.scrape())
		}
	}
}
