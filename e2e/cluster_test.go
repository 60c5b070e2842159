package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/load"
)

type status = holdfast.Status

// The tests with an API server as the source, in the order in which they are
// run: as with a folder, removals of TLS hosts come last.

func TestClusterFirstStart(t *testing.T) {
	w := inCluster(t)
	t.Logf("loading the API server took %v", w.cluster.loading.Round(time.Millisecond))
	firstStart(t, w)
}

// HF-01
func TestClusterRestart(t *testing.T) { restarts(t, inCluster(t)) }

// HF-13
func TestClusterEditIsSmall(t *testing.T) { edits(t, inCluster(t)) }

// HF-02: a host deleted while holdfast is down is served until the lists are complete,
// and one added meanwhile does not wait for a kind that has no part in it.
func TestClusterDeletedWhileDown(t *testing.T) {
	w := inCluster(t)
	doomed, added := w.freshHost(false), w.freshHost(false)
	if err := w.put(t.Context(), &doomed); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.remove(t.Context(), &added); err != nil {
			t.Error(err)
		}
	}()
	_, restore := behindGate(t)
	defer restore()
	traffic := w.background(t)
	if err := errors.Join(w.remove(t.Context(), &doomed), w.put(t.Context(), &added)); err != nil {
		t.Fatal(err)
	}
	onDoomed, onAdded := w.watch(t, &doomed), w.watch(t, &added)
	defer onDoomed.Stop()
	defer onAdded.Stop()
	until(t, onDoomed, "200")
	until(t, onAdded, "404")
	// An Ingress may have a part in any host, so no host is gone before these
	// are known; that a host is there needs none.
	w.cluster.gate.Hold("ingresses")
	if err := w.Holdfast.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, onAdded, "200")
	w.settle(t, "Ingress")
	if now := onDoomed.Now(); now != "200" {
		t.Errorf("the deleted host answers %s before the lists are complete", now)
	}
	w.cluster.gate.Pass("ingresses")
	goneInTime(t, w, onDoomed)
	unharmed(t, traffic)
}

// goneWithin is how long after the lists a removed host may still be served.
const goneWithin = 2 * time.Second

func goneInTime(t *testing.T, w *world, doomed *load.Watch) {
	t.Helper()
	if _, err := w.Holdfast.Await(t.Context(), "lists", patience, func(s *status) error { return s.Lists() }); err != nil {
		t.Fatal(err)
	}
	complete := time.Now()
	if err := within(t.Context(), doomed, "404", goneWithin); err != nil {
		t.Error(err)
	}
	t.Logf("gone %v after the lists were complete", time.Since(complete).Round(time.Millisecond))
}

// lateness is how long a list is held back.
const lateness = 20 * time.Second

// A kind whose list is late takes nothing away, and holds up nothing that does
// not involve it.
func TestClusterLateList(t *testing.T) {
	for _, k := range lacking {
		t.Run(k.kind, func(t *testing.T) {
			w, restore := behindGate(t)
			defer restore()
			w.cluster.gate.Hold(k.resource)
			k.lack(t, w, lateness, "unknown", "listing", "failing")
			w.cluster.gate.Pass(k.resource)
			if s := w.settle(t); s.WaitsFor(k.kind) > 0 {
				t.Errorf("complete, but %d still wait for %s", s.WaitsFor(k.kind), k.kind)
			}
		})
	}
}

// HF-04: a kind that may not be read is the same, for ever; once it may be read,
// holdfast finds out by itself.
func TestClusterForbidden(t *testing.T) {
	for _, k := range lacking {
		t.Run(k.kind, func(t *testing.T) {
			w, restore := behindGate(t)
			defer restore()
			if err := w.cluster.AllowReading(t.Context(), k.resource); err != nil {
				t.Fatal(err)
			}
			k.lack(t, w, 5*time.Second, "forbidden")
			if err := w.cluster.AllowReading(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.settle(t)
		})
	}
}

// HF-05
func TestClusterNewHostsUnderLoad(t *testing.T) { newHosts(t, inCluster(t)) }

// lacks is a kind that can't be listed, and a host that can do without.
type lacks struct {
	kind, resource string
	without        func(w *world) fixture.Host
}

var lacking = []lacks{
	{"EndpointSlice", "endpointslices", func(w *world) fixture.Host { return w.neighbour() }},
	{"Secret", "secrets", func(w *world) fixture.Host { return w.freshHost(false) }},
}

// neighbour is a new host that uses the Service of another, so that Envoy has
// its endpoints already.
func (w *world) neighbour() fixture.Host {
	h, fresh := w.hosts[20], w.fresh()
	p := h.Objects[len(h.Objects)-1].DeepCopyObject().(*contourv1.HTTPProxy)
	p.Name, p.Spec.VirtualHost.Fqdn, p.Spec.VirtualHost.TLS = fresh.Name, fresh.FQDN, nil
	return fixture.Host{Namespace: h.Namespace, Name: p.Name, FQDN: fresh.FQDN, Objects: []fixture.Object{p}, Probes: h.Probes}
}

// lack starts holdfast while it can't list the kind: for a while nothing may go
// away or shrink; a new host that needs nothing of the kind is served at once;
// and the status says what is missing.
func (k lacks) lack(t *testing.T, w *world, d time.Duration, states ...string) {
	t.Helper()
	before := w.moment(t)
	traffic := w.background(t)
	began := time.Now()
	if err := w.Holdfast.Start(); err != nil {
		t.Fatal(err)
	}
	w.told(t, k.kind, states...)
	if s := w.settle(t, k.kind); s.WaitsFor(k.kind) == 0 {
		t.Errorf("the status has nothing that waits for %s", k.kind)
	}
	k.newcomer(t, w)
	stays(t, "service without "+k.kind, max(time.Second, d-time.Since(began)), func() error {
		if r := traffic.Report(); r.Failed > 0 {
			return fmt.Errorf("%v", r)
		}
		return nil
	})
	w.told(t, k.kind, states...)
	if err := w.moment(t).Check(before); err != nil {
		t.Error(err)
	}
	unharmed(t, traffic)
}

// newcomer adds a host that does without the kind, and removes it again, which
// may have to wait.
func (k lacks) newcomer(t *testing.T, w *world) {
	t.Helper()
	h := k.without(w)
	watch := w.watch(t, &h)
	until(t, watch, "404")
	began := time.Now()
	if err := w.put(t.Context(), &h); err != nil {
		t.Fatal(err)
	}
	until(t, watch, "200")
	t.Logf("a new host was served %v after it was written", time.Since(began).Round(time.Millisecond))
	if phases := watch.Stop(); load.Outcomes(phases) != "404 200" {
		t.Errorf("the new host answered %v", phases)
	}
	if err := w.remove(t.Context(), &h); err != nil {
		t.Error(err)
	}
}
