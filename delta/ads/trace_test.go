package ads_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/delta/ads"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
	"github.com/holdfast-xds/holdfast/tracing"
)

// observed is a world of which everything is seen.
type observed struct {
	*world
	ring     *tracing.Ring
	tracer   trace.Tracer
	metrics  tracing.Metrics
	arrivals *tracing.Arrivals
	log      *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func startObserved(t *testing.T) *observed {
	t.Helper()
	o := &observed{ring: tracing.NewRing(64), arrivals: &tracing.Arrivals{}, log: &lockedBuffer{}}
	provider, shutdown, err := tracing.Setup(t.Context(), tracing.Options{Ring: o.ring})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shutdown(context.Background()) })
	o.tracer = provider.Tracer(tracing.Scope)
	if o.metrics, err = tracing.NewMetrics(); err != nil {
		t.Fatal(err)
	}
	o.world = startWith(t, ads.Options{
		Tracer: o.tracer, Meter: o.metrics.Meter, Arrivals: o.arrivals, Logger: slog.New(slog.NewTextHandler(o.log, nil)),
	})
	return o
}

// change commits a traced change, that came a while ago, and gives its trace's id.
func (o *observed) change(script string) string {
	_, span := o.tracer.Start(context.Background(), tracing.SpanCommit)
	defer span.End()
	c := o.ix.Apply(span.SpanContext(), indextest.Changes(script)...)
	o.arrivals.Note(uint64(c.Revision), time.Now().Add(-time.Second))
	return span.SpanContext().TraceID().String()
}

// until waits for a trace to satisfy the condition.
func (o *observed) until(t *testing.T, id string, condition func(tree string) bool) string {
	t.Helper()
	tree := ""
	o.wait(func() bool {
		found, ok := o.ring.Trace(id)
		if ok {
			tree = treeOf(found)
		}
		return ok && condition(tree)
	})
	if !condition(tree) {
		t.Fatalf("the trace never was as expected; at last:\n%s", tree)
	}
	return tree
}

// wait looks again and again until the condition holds, or the test's time is up:
// spans end in goroutines of the server.
func (o *observed) wait(condition func() bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-o.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// treeOf draws a trace: names, events with what is in them, links.
func treeOf(t tracing.Trace) string {
	var out strings.Builder
	var draw func(parent string, depth int)
	known := map[string]bool{}
	for _, s := range t.Spans {
		known[s.ID] = true
	}
	draw = func(parent string, depth int) {
		for _, s := range t.Spans {
			if p := s.Parent; p != parent && (parent != "" || known[p]) {
				continue
			}
			fmt.Fprintf(&out, "%s%s", strings.Repeat("  ", depth), strings.TrimPrefix(s.Name, "holdfast."))
			for _, key := range []string{"holdfast.resource.names", "holdfast.nack.error_detail"} {
				if v := s.Attributes[key]; v != "" {
					out.WriteString(" " + v)
				}
			}
			if s.Error != "" {
				out.WriteString(" ERROR " + s.Error)
			}
			fmt.Fprintln(&out, strings.Repeat(" +link", len(s.Links)))
			for _, e := range s.Events {
				fmt.Fprintf(&out, "%s! %s %s %s %s\n", strings.Repeat("  ", depth+1), strings.TrimPrefix(e.Name, "holdfast."),
					e.Attributes["holdfast.resource.name"], e.Attributes["holdfast.reason"], e.Attributes["holdfast.kinds.missing"])
			}
			draw(s.ID, depth+1)
		}
	}
	draw("", 0)
	return out.String()
}

// recv gives the next response without answering it.
func (c *client) recv() *discoveryv3.DeltaDiscoveryResponse {
	c.t.Helper()
	r, err := c.stream.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	return r
}

func (c *client) reject(r *discoveryv3.DeltaDiscoveryResponse, message string) {
	c.t.Helper()
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce, ErrorDetail: &statuspb.Status{Code: 13, Message: message}})
}

func TestAChangeIsOneTraceToItsAck(t *testing.T) {
	o := startObserved(t)
	c := o.connect(t)
	c.send(request(delta.Cluster))
	c.next()
	id := o.change("svc web port=81 @11")
	c.expect(`web="web port=81"`)
	got := o.until(t, id, func(tree string) bool { return strings.Contains(tree, "ack") })
	if want := "commit\n  response [\"web\"]\n    ack\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// The connection is a trace of its own, named in the log, with what it was sent.
func TestAConnectionIsATrace(t *testing.T) {
	o := startObserved(t)
	c := o.connect(t)
	c.send(request(delta.Cluster))
	c.next()
	o.wait(func() bool { return strings.Contains(o.log.String(), "envoy connected") })
	_, id, ok := strings.Cut(strings.TrimSpace(o.log.String()), "trace_id=")
	if !ok {
		t.Fatalf("no trace id in %s", o.log)
	}
	id, _, _ = strings.Cut(id, "\n")
	o.until(t, id, func(tree string) bool { return tree == "connect\n  response [\"web\"]\n    ack\n" })
}

// Envoy's words and the quarantine are on the trace; a private key is nowhere.
func TestARejectionIsOnTheTraceWithoutKeys(t *testing.T) {
	const planted = "MIIEvQIBADANBgkqhkiG9w0BAQ"
	o := startObserved(t)
	c := o.connect(t)
	c.send(request(delta.Cluster))
	c.next()
	id := o.change("svc web port=81 @11")
	c.reject(c.recv(), `Error: port 81 is bad: inline_bytes: "-----BEGIN PRIVATE KEY-----\n`+planted)
	tree := o.until(t, id, func(tree string) bool { return strings.Contains(tree, "quarantined") })
	for _, want := range []string{"response [\"web\"] ERROR rejected", "nack Error: port 81 is bad: ", "! quarantined web"} {
		if !strings.Contains(tree, want) {
			t.Errorf("no %q in\n%s", want, tree)
		}
	}
	if !strings.Contains(o.log.String(), "trace_id="+id) {
		t.Errorf("the log does not name the trace %s:\n%s", id, o.log)
	}
	raw, _ := o.ring.Trace(id)
	for what, text := range map[string]string{"trace": fmt.Sprint(raw), "log": o.log.String(), "status": fmt.Sprint(o.ads.Status()), "metrics": o.scrape()} {
		if strings.Contains(text, planted) || strings.Contains(text, "BEGIN PRIVATE") {
			t.Errorf("a private key is in the %s:\n%s", what, text)
		}
	}
}

// What waits says for what; the response that takes it along links back.
func TestWithheldAndReleasedAreOnTheTrace(t *testing.T) {
	o := startObserved(t)
	c := o.connect(t)
	for _, url := range []string{delta.Cluster, delta.ScopedRoutes} {
		c.send(request(url))
	}
	c.next() // clusters; scopes wait for their endpoints
	c.send(request(delta.Endpoints, "web"))
	c.next()
	c.next() // scopes
	id := o.change("slice n of=new addr=1 @30\nsvc new @31\nhost b svc=new @32")
	cds := c.recv()
	c.send(request(delta.Endpoints, "new"))
	c.next()
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: cds.TypeUrl, ResponseNonce: cds.Nonce})
	c.expect(`b="b"`)
	tree := o.until(t, id, func(tree string) bool { return strings.Count(tree, "ack") == 3 })
	for _, want := range []string{"withhold\n", "! withheld b waits for Cluster new", "response [\"b\"] +link\n", "! released b"} {
		if !strings.Contains(tree, want) {
			t.Errorf("no %q in\n%s", want, tree)
		}
	}
}

// A response that carries several changes is in the trace of the newest, and links
// to the others.
func TestABatchLinks(t *testing.T) {
	o := startObserved(t)
	c := o.connect(t)
	c.send(request(delta.Cluster))
	c.next()
	o.change("svc web port=81 @11")
	busy := c.recv()
	o.change("svc web port=82 @12")
	newest := o.change("svc web port=83 @13")
	o.wait(func() bool { return o.ads.Status()[0].Revision == o.ix.Snapshot().Revision() })
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: busy.TypeUrl, ResponseNonce: busy.Nonce})
	c.expect(`web="web port=83"`)
	o.until(t, newest, func(tree string) bool { return tree == "commit\n  response [\"web\"] +link\n    ack\n" })
}

func (o *observed) scrape() string {
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/openmetrics-text")
	w := httptest.NewRecorder()
	o.metrics.Handler.ServeHTTP(w, r)
	return w.Body.String()
}

// Counters count all that was sent, to its last byte, and do not go down when the
// stream ends; the latency has an exemplar that leads to the trace.
func TestMetricsOfStreams(t *testing.T) {
	o := startObserved(t)
	if zero := `holdfast_nacks_total{type="Cluster"} 0.0`; !strings.Contains(o.scrape(), zero) {
		t.Errorf("at first there is no %s", zero)
	}
	c := o.connect(t)
	c.send(request(delta.Cluster))
	c.next()
	id := o.change("svc web port=81 @11")
	c.next()
	o.until(t, id, func(tree string) bool { return strings.Contains(tree, "ack") })
	o.change("svc web port=82 @12")
	c.reject(c.recv(), "no")
	o.wait(func() bool { return strings.Contains(o.scrape(), `holdfast_nacks_total{type="Cluster"} 1.0`) })
	size := o.ads.Status()[0].Types[0].Bytes
	c.close()
	o.wait(func() bool { return len(o.ads.Status()) == 0 })
	lines := strings.Split(o.scrape(), "\n")
	for _, want := range []string{
		`holdfast_responses_total{type="Cluster"} 3.0`, `holdfast_acks_total{type="Cluster"} 2.0`, `holdfast_nacks_total{type="Cluster"} 1.0`,
		`holdfast_sent_resources_total{type="Cluster"} 3.0`, fmt.Sprintf(`holdfast_sent_bytes_total{type="Cluster"} %d.0`, size),
		`holdfast_change_ack_duration_seconds_count{type="Cluster"} 1`,
	} {
		if !slices.ContainsFunc(lines, func(l string) bool { return l == want || strings.HasPrefix(l, want+" #") }) {
			t.Errorf("no %s", want)
		}
	}
	// It took a little more than the second that is said to have passed before.
	if !slices.ContainsFunc(lines, func(l string) bool {
		return strings.HasPrefix(l, `holdfast_change_ack_duration_seconds_bucket{type="Cluster",le="2.5"} 1 # {`) && strings.Contains(l, id)
	}) {
		t.Errorf("no exemplar of trace %s in\n%s", id, strings.Join(lines, "\n"))
	}
}

// Types that clients make up do not make series.
func TestMadeUpTypesShareASeries(t *testing.T) {
	o := startObserved(t)
	c := o.connect(t)
	c.send(request(delta.Cluster))
	c.next()
	c.send(request("example.com/Made.Up", "x"))
	c.expect("-x")
	if body := o.scrape(); strings.Contains(body, "Up") || !strings.Contains(body, `holdfast_responses_total{type="other"} 1.0`) {
		t.Errorf("got\n%s", body)
	}
}

// Tracing that is off leaves the streams as they are.
func TestNothingIsTracedWhenOff(t *testing.T) {
	w := start(t)
	c := w.connect(t)
	c.send(request(delta.Cluster))
	c.next()
	w.ix.Apply(index.Cause{}, indextest.Changes("svc web port=81 @11")...)
	c.expect(`web="web port=81"`)
}
