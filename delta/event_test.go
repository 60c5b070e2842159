package delta_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// tracedAs is the cause of change number n; its trace is being recorded.
func tracedAs(n byte) index.Cause { return causeWith(n, trace.FlagsSampled) }

func causeWith(n byte, flags trace.TraceFlags) index.Cause {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{n}, SpanID: trace.SpanID{n}, TraceFlags: flags})
}

// traced is a client whose connection and whose changes are traced.
func traced(t *testing.T) *client {
	t.Helper()
	c := newClient(indextest.New())
	c.opts.Events, c.opts.Cause = true, tracedAs(255)
	c.connect(c.ix)
	return c
}

// apply makes changes and gives what is sent for them.
func (c *client) apply(cause index.Cause, script string) []*delta.Response {
	c.ix.Apply(cause, indextest.Changes(script)...)
	return c.advance()
}

// causes gives the numbers of the changes that a response carries.
func causes(r *delta.Response) string {
	var out []string
	for _, c := range r.Causes {
		id := c.TraceID()
		out = append(out, fmt.Sprint(id[0]))
	}
	return strings.Join(out, " ")
}

// told writes events: what, names, number of the cause, missing kinds.
func told(events []delta.Event) string {
	var out []string
	for _, e := range events {
		id := e.Cause.TraceID()
		line := []string{[]string{"withheld", "released", "quarantined"}[e.What], service(e.Type)}
		for _, w := range e.Some {
			line = append(line, w.Resource.Name)
			for _, l := range w.Missing {
				line = append(line, "for "+string(l.Kind))
			}
		}
		line = append(line, fmt.Sprintf("by %d", id[0]))
		if e.By.IsValid() {
			by := e.By.TraceID()
			line = append(line, fmt.Sprintf("freed by %d", by[0]))
		}
		out = append(out, strings.Join(line, " "))
	}
	return strings.Join(out, "\n")
}

func find(t *testing.T, out []*delta.Response, name string) *delta.Response {
	t.Helper()
	i := slices.IndexFunc(out, func(r *delta.Response) bool { return service(r.Type) == name })
	if i < 0 {
		t.Fatalf("no response of %s in %v", name, responseLines(out))
	}
	return out[i]
}

// settled is a client that has two hosts on one cluster.
func settled(t *testing.T) *play {
	t.Helper()
	p := &play{t: t, client: traced(t)}
	p.ix.Apply(tracedAs(1), indextest.Changes(`list host @10; a svc=web @5; b svc=web @6
		list path @10
		list svc @10; web @6
		list slice @10; w of=web addr=1 @7
		list cert @10`)...)
	p.connect(p.ix)
	for _, name := range []string{"CDS", "LDS", "SRDS"} {
		p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: urls[name]})
	}
	p.settle(nil)
	p.tick(500 * time.Millisecond)
	p.stream.Events()
	return p
}

// A response carries the changes of what is in it, and of nothing else.
func TestResponseCarriesItsChanges(t *testing.T) {
	p := settled(t)
	out := p.apply(tracedAs(2), "slice w of=web addr=2 @20")
	if got := causes(find(t, out, "EDS")); got != "2" {
		t.Errorf("EDS carries %q", got)
	}
	// Changes that come while Envoy is busy share a response; it carries each once.
	p.apply(tracedAs(3), "slice w of=web addr=3 @21")
	p.apply(tracedAs(4), "slice w of=web addr=4 @22")
	p.apply(tracedAs(5), "host b svc=web path=/x @23")
	r := find(t, p.ack(delta.Endpoints), "EDS")
	if got := causes(r); got != "3 4" {
		t.Errorf("the next EDS carries %q", got)
	}
	if want := p.ix.Snapshot().Revision() - 2; r.Oldest != want {
		t.Errorf("its oldest change is revision %d, not %d", r.Oldest, want)
	}
}

// What is sent because the client asks is of the connection's trace.
func TestConnectionIsTheCauseOfWhatIsAskedFor(t *testing.T) {
	p := &play{t: t, client: traced(t)}
	p.ix.Apply(tracedAs(1), indextest.Changes("list host @10; a svc=web @5\nlist path @10\nlist svc @10; web @6\nlist slice @10\nlist cert @10")...)
	p.connect(p.ix)
	r := find(t, p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: delta.Cluster}), "CDS")
	if got := causes(r); got != "255" || r.Oldest != 0 {
		t.Errorf("carries %q, oldest %d", got, r.Oldest)
	}
}

// A new host is one trace: its endpoints, which Envoy asks for by name, are of it
// too, and what waits for them says so.
func TestNewHostIsOneTrace(t *testing.T) {
	p := settled(t)
	out := p.apply(tracedAs(7), "slice n of=new addr=1 @30")
	out = append(out, p.apply(tracedAs(8), "svc new @31")...)
	out = append(out, p.apply(tracedAs(9), "host c svc=new @32")...)
	if got := causes(find(t, out, "CDS")); got != "9" {
		t.Errorf("the cluster is of %q", got)
	}
	if got := told(p.stream.Events()); !strings.Contains(got, "withheld SRDS c by 9") {
		t.Errorf("events:\n%s", got)
	}
	out = p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: delta.Endpoints, ResourceNamesSubscribe: []string{"new"}})
	if got := causes(find(t, out, "EDS")); got != "9" {
		t.Errorf("the endpoints are of %q", got)
	}
	out = append(p.ack(delta.Cluster), p.ack(delta.Endpoints)...)
	r := find(t, out, "SRDS")
	if got := causes(r); got != "9" {
		t.Errorf("the scope is of %q", got)
	}
	events := p.stream.Events()
	released := slices.IndexFunc(events, func(e delta.Event) bool { return e.What == delta.BecameReleased })
	if released < 0 || events[released].Nonce != r.Nonce || events[released].Told != tracedAs(9).SpanID() {
		t.Errorf("events:\n%s", told(events))
	}
}

// What lacks a kind is told with it, once, and its release with what set it free.
func TestWithheldNamesTheKindAndItsRelease(t *testing.T) {
	p := &play{t: t, client: traced(t)}
	p.ix.Apply(tracedAs(1), indextest.Changes("list host @10; b svc=web cert=c2 @5\nlist path @10\nlist svc @10; web @6\nlist slice @10; w of=web addr=1 @7")...)
	p.connect(p.ix)
	for _, name := range []string{"CDS", "LDS", "SRDS"} {
		p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: urls[name]})
	}
	p.settle(nil)
	p.tick(500 * time.Millisecond)
	p.stream.Events()
	p.apply(tracedAs(2), "eager cert c1 pem=x @8\nhost a svc=web cert=c1 @20") // and what of c2? certs were never listed
	p.settle(nil)
	events := p.stream.Events()
	if got := told(events); !strings.Contains(got, "withheld LDS https for cert by 2") {
		t.Fatalf("events:\n%s\nstatus:\n%s", got, statusLines(p.stream.Status(), p.now))
	}
	p.apply(tracedAs(3), "svc other @21") // has nothing to do with it
	if got := told(p.stream.Events()); got != "" {
		t.Errorf("told again:\n%s", got)
	}
	p.apply(tracedAs(4), "list cert @22; c1 pem=x @8")
	if got := told(p.stream.Events()); !strings.Contains(got, "released LDS https for cert by 2 freed by 4") {
		t.Errorf("events:\n%s", got)
	}
}

// A rejected response is sent again in parts; the parts are of the same change, and
// so is the culprit's quarantine.
func TestRejectionStaysInTheTrace(t *testing.T) {
	p := settled(t)
	find(t, p.apply(tracedAs(6), "slice w of=web addr=bad @40"), "EDS")
	p.nack(delta.Endpoints, "bad address")
	if got := told(p.stream.Events()); !strings.Contains(got, "quarantined EDS web by 6") {
		t.Errorf("events:\n%s", got)
	}
	// Two at once: the parts that follow carry the change.
	p = settled(t)
	p.apply(tracedAs(7), "svc web port=1 @50")
	r := p.flying[delta.Cluster]
	if r == nil {
		t.Fatal("no CDS is in flight")
	}
	if got := causes(r); got != "7" {
		t.Errorf("the cluster is of %q", got)
	}
}

// What is not traced has no events and no causes, and is measured all the same.
func TestUntracedChangesLeaveNoTrace(t *testing.T) {
	p := settled(t)
	out := p.apply(causeWith(9, 0), "slice w of=web addr=2 @20")
	r := find(t, out, "EDS")
	if len(r.Causes) != 0 || r.Oldest == 0 {
		t.Errorf("causes %q, oldest %d", causes(r), r.Oldest)
	}
	p.apply(causeWith(10, 0), "host c svc=nowhere,web @32\nsvc nowhere @33")
	if got := p.stream.Events(); len(got) != 0 {
		t.Errorf("events:\n%s", told(got))
	}
}

// Invariant: events are bounded, whatever is withheld.
func TestEventsAreBounded(t *testing.T) {
	p := settled(t)
	var script strings.Builder
	for i := range 500 {
		fmt.Fprintf(&script, "host h%d svc=s%d @%d\nsvc s%d @%d\n", i, i, 100+2*i, i, 101+2*i)
	}
	p.apply(tracedAs(8), script.String())
	events := p.stream.Events()
	if len(events) == 0 || len(events) > 6 {
		t.Fatalf("%d events", len(events))
	}
	if e := events[0]; e.Count != 500 || len(e.Some) > 16 {
		t.Errorf("the first one: %d of %d", len(e.Some), e.Count)
	}
}
