package e2e

import (
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/load"
)

// edits: one HTTPProxy edited among 3,407 costs what the edit touches.
func edits(t *testing.T, w *world) {
	for name, h := range map[string]*fixture.Host{"http": hostOf(w.hosts, false), "https": hostOf(w.hosts, true)} {
		t.Run(name, func(t *testing.T) {
			sent := edit(t, w, h)
			t.Logf("an edit sent %+v", sent)
			if sent.Bytes > limitEditBytes {
				t.Errorf("%d bytes for one edit, more than %d", sent.Bytes, limitEditBytes)
			}
		})
	}
}

// edit adds a route to a host, sees it served, puts the host back, and gives
// what the first of the two sent.
func edit(t *testing.T, w *world, h *fixture.Host) holdfast.Sent {
	t.Helper()
	before := w.settle(t).Sent()
	changed := withRoute(*h, "/edited", 418)
	watch := load.StartWatch(t.Context(), w.Client(nil), load.Target{Host: h.FQDN, TLS: h.TLS, Path: "/edited", Status: 418})
	defer watch.Stop()
	if err := w.put(t.Context(), &changed); err != nil {
		t.Fatal(err)
	}
	until(t, watch, "418")
	sent := w.settle(t).Sent().Minus(before)
	if err := w.put(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	until(t, watch, "200")
	return sent
}

// withRoute gives the host with one more direct response.
func withRoute(h fixture.Host, path string, status int) fixture.Host {
	objects := append([]fixture.Object(nil), h.Objects...)
	last := len(objects) - 1
	p := objects[last].DeepCopyObject().(*contourv1.HTTPProxy)
	p.Spec.Routes = append(p.Spec.Routes, contourv1.Route{
		Conditions:           []contourv1.MatchCondition{{Prefix: path}},
		DirectResponsePolicy: &contourv1.HTTPDirectResponsePolicy{StatusCode: status},
	})
	objects[last] = p
	h.Objects = objects
	return h
}

func hostOf(hosts []fixture.Host, tls bool) *fixture.Host {
	for i := range hosts {
		if hosts[i].TLS == tls {
			return &hosts[i]
		}
	}
	panic("the fixture has both")
}

// newHosts adds hosts under load, one after the other, while they are asked
// for: each is refused, then served, never half there.
func newHosts(t *testing.T, w *world) {
	traffic := w.background(t)
	var added []fixture.Host
	for i := range 10 {
		h := w.freshHost(i%5 == 4)
		added = append(added, h)
		appear(t, w, &h)
	}
	unharmed(t, traffic)
	for i := range added {
		if err := w.remove(t.Context(), &added[i]); err != nil {
			t.Fatal(err)
		}
	}
	w.settle(t)
	w.gone(t, &added[0])
}

// appear adds one host and checks what was answered for it meanwhile.
func appear(t *testing.T, w *world, h *fixture.Host) {
	t.Helper()
	absent := "404"
	if h.TLS {
		absent = load.NoHandshake
	}
	watch := w.watch(t, h)
	until(t, watch, absent)
	began := time.Now()
	if err := w.put(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	until(t, watch, "200")
	t.Logf("%s: served after %v", h.FQDN, time.Since(began).Round(time.Millisecond))
	// What comes late must not hurt either.
	stays(t, "service", 300*time.Millisecond, func() error { return nil })
	phases := watch.Stop()
	if got := load.Outcomes(phases); got != absent+" 200" {
		t.Errorf("%s: %v (%s), want %s and then 200 only", h.FQDN, phases, phases[min(1, len(phases)-1)].Detail, absent)
	}
}

// gone waits until a host is not served any more.
func (w *world) gone(t *testing.T, h *fixture.Host) {
	t.Helper()
	watch := w.watch(t, h)
	defer watch.Stop()
	until(t, watch, "404")
}
