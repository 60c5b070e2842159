package simulation

import (
	"fmt"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// check looks at every Envoy that an action changed, and at what is withheld
// from those that have come to rest.
func (w *world) check() {
	for i, e := range w.envoys {
		if w.violation != nil {
			return
		}
		if e.changed {
			e.changed = false
			w.checkSafety(i, e)
			w.checkReferences(e)
		}
		w.checkPatience(e)
		if w.actionCount++; w.actionCount%16 == 0 && e.conn != nil && !e.conn.behind() {
			w.checkWithheld(e.conn)
		}
	}
}

// checkSafety: no Envoy loses, or is given a shrunken form of, what the API
// server has held without a break since the moment that the Envoy's version of
// it was made from.
func (w *world) checkSafety(i int, e *envoy) {
	s := e.inService()
	before, now := w.served[i], s.facts(w.gen.hosts)
	w.served[i] = now
	if before == nil || !e.wasReady {
		w.checkStart(e, s, now)
	}
	for f, view := range before {
		if _, ok := now[f]; ok {
			continue
		}
		if since, holds := w.truth.since[f]; holds && since <= view && !s.excused(f, e.apart) {
			w.fail("safety", "%s lost %s, which holds since version %d; it was made from version %d; now %s, where %s is right",
				e.name, f, since, view, s.explain(f), w.truth.now.explain(f))
		}
	}
}

// checkStart: an Envoy that becomes ready serves all that held when what it has
// was made, unless it was let go without a kind that kept failing.
func (w *world) checkStart(e *envoy, s *serving, now map[fact]version) {
	if !e.ready || e.wasReady {
		return
	}
	e.wasReady = true
	view, whole := e.startedFrom()
	if !whole || !w.gen.tidy {
		return
	}
	for f, since := range w.truth.since {
		if _, ok := now[f]; !ok && since <= view {
			w.fail("start", "%s became ready without %s, which holds since version %d; all that it has is of version %d; now %s", e.name, f, since, view, s.explain(f))
		}
	}
}

// startedFrom gives the version that all of an Envoy is of, if there is one.
func (e *envoy) startedFrom() (view version, whole bool) {
	view, whole = 1<<62, true
	var newest version
	for _, x := range e.holdings() {
		if x != nil {
			view, newest = min(view, x.view), max(newest, x.newest)
			whole = whole && !x.partial
		}
	}
	return view, whole && newest <= view
}

// checkReferences: a route uses only clusters that are in service, a listener
// only secrets and RouteConfigurations that are there.
func (w *world) checkReferences(e *envoy) {
	for _, name := range sorted(e.routes) {
		if e.routes[name].excused || e.leftOver(name) {
			continue
		}
		for _, c := range e.routes[name].parsed.(*parsedRoutes).clusters {
			if x := e.clusters[c]; (x == nil || x.active == nil) && !e.excusable(c) {
				w.fail("references", "%s: RouteConfiguration %s uses cluster %s, which it does not hold", e.name, name, c)
			}
		}
	}
}

// leftOver: the Envoy has the RouteConfiguration in a version that no server can
// know of. It was removed, which Envoy ignores for as long as a listener that is
// being replaced still names it; or it came in a response that Envoy rejected and
// applied in part.
func (e *envoy) leftOver(routes string) bool {
	s := e.subs[delta.RouteConfiguration]
	_, has := s.versions[routes]
	return !has || s.unsure(routes)
}

// excusable: a cluster that the Envoy rejected. Routes of a host that it knew
// nothing of go out without it.
func (e *envoy) excusable(cluster string) bool {
	_, rejected := e.subs[delta.Cluster].rejected[cluster]
	return rejected
}

// checkPatience: a client whose stream is at rest waits for nothing that the
// stream made it wait for.
func (w *world) checkPatience(e *envoy) {
	for _, why := range e.gaveUp {
		w.fail("references", "%s: %s", e.name, why)
	}
	if e.conn == nil || !e.conn.idle() {
		return
	}
	for _, name := range sorted(e.clusters) {
		if c := e.clusters[name]; c.warming != nil && c.stream == e.conn && w.wanted(e.conn, c.warming) {
			w.fail("warming", "%s: cluster %s waits for its endpoints, and nothing is under way", e.name, name)
		}
	}
	if !e.conn.stream.Deadline().IsZero() || !w.gen.tidy || !e.conn.replica.complete() {
		return // something comes with time, was rejected, or can't be proven for now
	}
	for _, name := range sorted(e.listeners) {
		if l := e.listeners[name]; l.warming != nil && l.stream == e.conn && w.wanted(e.conn, l.warming) {
			w.fail("warming", "%s: listener %s waits for what it names, and nothing is under way", e.name, name)
		}
	}
}

// wanted: the replica still has the very cluster. One that went before its
// endpoints could follow it warms until Envoy gives up.
func (w *world) wanted(c *conn, x *held) bool {
	row := c.replica.ix.Snapshot().Resource(x.key)
	return row != nil && row.Digest == x.digest
}

// checkWithheld: whatever is withheld names what is truly missing.
func (w *world) checkWithheld(c *conn) {
	snap := c.replica.ix.Snapshot()
	for _, t := range c.stream.Status().Types {
		for _, x := range t.Withheld {
			if x.Reason == "" {
				w.fail("withheld", "%s → %s: %s without a reason", c.replica.name, c.envoy.name, x.Resource)
			}
			for _, l := range x.Missing {
				if row := snap.Kind(l.Kind); row == nil || !lacks(row, l) {
					w.fail("withheld", "%s → %s: %s of %s waits for %s at %d, of which nothing is missing", c.replica.name, c.envoy.name, x.Action, x.Resource, l.Kind, l.Held)
				}
			}
		}
	}
}

// logWithheld tells a reader of the log what waits, and for what.
func (w *world) logWithheld() {
	if w.log == nil {
		return
	}
	for _, e := range w.envoys {
		if e.conn == nil {
			continue
		}
		for _, t := range e.conn.stream.Status().Types {
			for _, x := range t.Withheld {
				w.logf("%s → %s withheld: %s of %s: %s %v", e.conn.replica.name, e.name, x.Action, x.Resource, x.Reason, x.Missing)
			}
		}
	}
}

func lacks(row *index.KindRow, l index.Lack) bool {
	return !row.Complete() || row.Frontier.Version < l.Held
}

func (f fact) String() string {
	if f.cert != 0 {
		return fmt.Sprintf("certificate %x of %s", uint64(f.cert)>>48, f.host)
	}
	scheme := "http"
	if f.tls {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s%s → %s by %s", scheme, f.host, f.path, f.address, f.owner)
}
