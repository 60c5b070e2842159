package simulation

import (
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// quiet lets the world come to rest: every kind is well, every replica runs,
// every Envoy is connected, everything under way arrives, and time passes. Then
// all must be as if it had been so from the start.
func (w *world) quiet() {
	r := randomOf(w.seed, 4)
	w.logf("— quiet")
	for _, k := range allKinds {
		if w.api.health[k] != served {
			w.setHealth(k, served)
		}
	}
	for _, x := range w.replicas {
		if !x.alive() {
			x.start()
		}
	}
	if r.oneIn(2) {
		w.gen.repair()
	}
	w.rest(r)
	w.gen.repair()
	for _, e := range w.envoys {
		w.connect(r, e)
	}
	w.rest(r)
	w.converged()
	w.reconnected(r)
}

// rest drains, lets time pass and drains again.
func (w *world) rest(r *random) {
	for _, d := range []time.Duration{0, 2 * time.Second, 2 * time.Second, 16 * time.Second, 16 * time.Second} {
		w.wait(r, d)
		w.drain(r)
		w.bookmark(r)
		w.drain(r)
	}
}

func (w *world) bookmark(r *random) {
	for _, x := range w.replicas {
		if !x.alive() || !x.identified {
			continue
		}
		for _, wa := range x.watches {
			if !wa.busy() {
				x.apply(wa.step(r, w.now))
			}
		}
	}
}

// converged: every index and every Envoy is what a translation from scratch says.
func (w *world) converged() {
	if w.violation != nil {
		return
	}
	fresh := freshIndex(w).Snapshot()
	for _, x := range w.replicas {
		w.sameResources(x.name, fresh, x.ix.Snapshot())
	}
	w.sameResources("the truth", fresh, w.truth.ix.Snapshot())
	for _, e := range w.envoys {
		w.sameEnvoy(e, fresh)
		w.nothingWithheld(e.conn)
	}
}

func (w *world) sameResources(who string, want, got *index.Snapshot) {
	for _, url := range typeURLs {
		for x := range want.Resources(url) {
			if y := got.Resource(x.ResourceKey); y == nil || y.Digest != x.Digest {
				w.fail("convergence", "%s: %s is %s", who, x.ResourceKey, state(y))
			}
		}
		for y := range got.Resources(url) {
			if want.Resource(y.ResourceKey) == nil {
				w.fail("convergence", "%s: %s should be gone", who, y.ResourceKey)
			}
		}
	}
}

func state(y *index.Resource) string {
	if y == nil {
		return "missing"
	}
	return "another version"
}

func (w *world) sameEnvoy(e *envoy, want *index.Snapshot) {
	if !e.ready || e.warms() || e.listenersWarm() {
		w.fail("convergence", "%s is not ready, or warming", e.name)
	}
	has := e.holdings()
	for _, url := range typeURLs {
		s := e.subs[url]
		for x := range want.Resources(url) {
			if s != nil && s.wants(x.Name) && !s.unsure(x.Name) {
				if got := has[x.ResourceKey]; got == nil || got.digest != x.Digest {
					w.fail("convergence", "%s: %s is not the present version", e.name, x.ResourceKey)
				}
			}
		}
		if s == nil {
			continue
		}
		for _, name := range sorted(s.names) {
			if k := (index.ResourceKey{Type: url, Name: name}); want.Resource(k) == nil {
				w.fail("convergence", "%s asks for %s, which should not be", e.name, k)
			}
		}
	}
	for k := range has {
		if want.Resource(k) == nil && !e.subs[k.Type].unsure(k.Name) {
			w.fail("convergence", "%s: %s should be gone", e.name, k)
		}
	}
}

// unsure: what the Envoy has came in a response that it rejected and applied in
// part, of which it says nothing when it connects anew.
func (s *clientSub) unsure(name string) bool {
	_, rejected := s.rejected[name]
	return rejected
}

// holdings gives all that an Envoy has in service.
func (e *envoy) holdings() map[index.ResourceKey]*held {
	out := map[index.ResourceKey]*held{}
	for name, c := range e.clusters {
		out[index.ResourceKey{Type: delta.Cluster, Name: name}] = c.active
		if c.endpoints != nil {
			out[c.endpoints.key] = c.endpoints
		}
	}
	for name, l := range e.listeners {
		out[index.ResourceKey{Type: delta.Listener, Name: name}] = l.active
	}
	for _, m := range []map[string]*held{e.scopes, e.routes, e.secrets} {
		for _, x := range m {
			out[x.key] = x
		}
	}
	return out
}

func (w *world) nothingWithheld(c *conn) {
	for _, t := range c.stream.Status().Types {
		for _, x := range t.Withheld {
			w.fail("convergence", "%s → %s: %s of %s is still withheld: %s", c.replica.name, c.envoy.name, x.Action, x.Resource, x.Reason)
		}
	}
}

// reconnected: an Envoy that comes back, to whatever replica, even one that has
// just started, is sent nothing that it has.
func (w *world) reconnected(r *random) {
	if w.violation != nil {
		return
	}
	if r.oneIn(2) {
		x := pick(r, w.replicas)
		x.crash()
		x.start()
	}
	for _, e := range w.envoys {
		if e.conn != nil {
			e.conn.replica.close(e.conn)
		}
		w.connect(r, e)
	}
	w.rest(r)
	w.converged()
}
