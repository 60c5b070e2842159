package delta

import (
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// Make before break. A route leaves when the clusters and endpoints that it uses
// were acknowledged; a cluster is removed when the routes that used it were
// acknowledged without it, plus a grace. Facts about Envoy behind this:
// RDS to a warming or unknown cluster is applied and answers 503; after a cluster
// update Envoy waits for endpoints without asking for them; a listener that names
// a missing secret or RouteConfiguration blocks the whole listener.

// notYet says why a resource has to wait for others; "" when it need not. coming
// tells that what it waits for is under way.
func (s *Stream) notYet(r *index.Resource, held bool) (why string, coming bool) {
	switch r.Type {
	case Cluster:
		return s.clusterNotYet(r)
	case RouteConfiguration:
		return s.routeNotYet(r, held)
	case ScopedRoutes, Listener:
		return s.referrerNotYet(r, held)
	default:
		return "", false
	}
}

// clusterNotYet: a cluster without endpoints that can be sent would warm for
// nothing (15 s), and hold back every other cluster's ACK meanwhile.
func (s *Stream) clusterNotYet(r *index.Resource) (string, bool) {
	for _, ref := range r.Refs {
		if ref.Type != Endpoints {
			continue
		}
		v := s.verdict(ref)
		if v.Action == Withhold || v.Action == Remove {
			return "waits for its endpoints " + ref.Name, false
		}
	}
	return "", false
}

// verdict is the rule's answer for another resource.
func (s *Stream) verdict(k index.ResourceKey) Verdict {
	var held *index.Token
	if t := s.subs[k.Type]; t != nil {
		held = t.held(k.Name, s.snap.Resource(k), s.snap)
	}
	return Decide(s.snap, k, held, s.excused)
}

// routeNotYet: every cluster that the routes use is in service at the client.
func (s *Stream) routeNotYet(r *index.Resource, held bool) (string, bool) {
	for _, ref := range r.Refs {
		if ref.Type != Cluster {
			continue
		}
		if why, coming := s.clusterAbsent(ref.Name, held); why != "" {
			return why, coming
		}
	}
	return "", false
}

// clusterAbsent says why a route must not use a cluster yet. A cluster that the
// client rejected keeps the old route in service; a client without an old route
// gets the new one, whose other routes work.
func (s *Stream) clusterAbsent(name string, held bool) (why string, coming bool) {
	row := s.snap.Resource(index.ResourceKey{Type: Cluster, Name: name})
	if row == nil {
		if held {
			return "waits for cluster " + name, false
		}
		return "", false
	}
	t := s.subs[Cluster]
	if t == nil {
		return s.orphan("waits for the client to ask for clusters")
	}
	if !t.holds(name, row) {
		if t.barred(row) && !held {
			return "", false
		}
		return "waits for cluster " + name, !t.barred(row)
	}
	for _, ref := range row.Refs {
		if ref.Type != Endpoints {
			continue
		}
		e := s.subs[Endpoints]
		if e == nil {
			return s.orphan("waits for the client to ask for endpoints")
		}
		if !e.holds(ref.Name, s.snap.Resource(ref)) {
			return "waits for the endpoints of cluster " + name, true
		}
	}
	return "", false
}

// introduction is how long a client gets to tell, type by type, what it holds
// before anything is taken from it: what it holds of one type (a Secret, say) may
// bear on what becomes of another.
const introduction = 300 * time.Millisecond

const unacquainted = "waits for the client to tell what it holds"

// acquainted: the client asked for its last type some time ago.
func (s *Stream) acquainted() bool {
	due := s.introduced.Add(introduction)
	if s.now.Before(due) {
		s.wakeAt(due)
		return false
	}
	return true
}

// orphan bounds the wait for a client that does not subscribe to a type at all.
func (s *Stream) orphan(why string) (string, bool) {
	due := s.started.Add(orphanWait)
	if !s.now.Before(due) {
		return "", false
	}
	s.wakeAt(due)
	return why, true
}

// referrerNotYet: scopes and listeners make Envoy ask for RouteConfigurations
// and secrets, so all of these must be ready to be answered.
func (s *Stream) referrerNotYet(r *index.Resource, held bool) (string, bool) {
	for _, ref := range r.Refs {
		target := s.snap.Resource(ref)
		if target == nil && ref.Type == Secret {
			continue // broken, and kept in service for those who hold an older version
		}
		if target == nil {
			return "waits for " + ref.String(), false
		}
		t := s.subs[ref.Type]
		if t != nil && t.holds(ref.Name, target) {
			continue
		}
		if v := s.verdict(ref); v.Action == Withhold {
			return "waits for " + ref.String(), false
		}
		if ref.Type == RouteConfiguration {
			if why, coming := s.routeNotYet(target, false); why != "" {
				return why, coming
			}
		}
	}
	return "", false
}

// followUp: after a cluster was sent Envoy waits for its endpoints and does not
// ask for those that it is subscribed to already. They go right behind it.
func (s *Stream) followUp(t *subscription, sent []*index.Resource) {
	e := s.subs[Endpoints]
	if t.typeURL != Cluster || e == nil {
		return
	}
	for _, r := range sent {
		for _, ref := range r.Refs {
			if row := s.snap.Resource(ref); ref.Type == Endpoints && e.asked(ref.Name, row) {
				e.want(ref.Name, always)
			}
		}
	}
}

// stillUsed says why a resource that is proven absent is not removed yet.
func (s *Stream) stillUsed(t *subscription, name string) string {
	switch t.typeURL {
	case Cluster:
		return s.clusterStillUsed(name)
	case Endpoints:
		return s.referredTo(t.key(name), Cluster)
	case RouteConfiguration:
		return s.referredTo(t.key(name), ScopedRoutes, Listener)
	case Secret:
		return s.secretStillUsed(t.key(name))
	default:
		return ""
	}
}

// secretStillUsed: a Secret that is broken has no resource, and a listener may
// still name it for the sake of those who hold an older version.
func (s *Stream) secretStillUsed(k index.ResourceKey) string {
	for r := range s.snap.Resources(Listener) {
		if slices.Contains(r.Refs, k) {
			return "in use by " + r.String()
		}
	}
	return s.referredTo(k, Listener)
}

func (s *Stream) clusterStillUsed(name string) string {
	k := index.ResourceKey{Type: Cluster, Name: name}
	if why := s.referredTo(k, RouteConfiguration, Listener); why != "" {
		delete(s.leaving, name)
		return why
	}
	since, ok := s.leaving[name]
	if !ok {
		since = s.now
		s.leaving[name] = since
	}
	if due := since.Add(s.opts.RemovalGrace); s.now.Before(due) {
		s.wakeAt(due)
		return "grace for requests under way"
	}
	delete(s.leaving, name)
	return ""
}

// referredTo says which resource of the given types, in a version that the client
// holds or is being sent, still refers to k. No live row of the index does, since k
// is gone; so only versions other than the current one can. Of those that the client
// brought along the references are not known: they are taken to refer to k.
func (s *Stream) referredTo(k index.ResourceKey, types ...string) string {
	for _, url := range types {
		t := s.subs[url]
		if t == nil {
			if s.unasked(url) {
				return "waits for the client to ask for " + short(url)
			}
			continue
		}
		for name, h := range t.others {
			if h.row == nil || slices.Contains(h.row.Refs, k) {
				return "may be used by " + t.key(name).String()
			}
		}
		if t.inFlight != nil && slices.ContainsFunc(t.inFlight.sent, func(r *index.Resource) bool { return slices.Contains(r.Refs, k) }) {
			return "in use by a response under way"
		}
	}
	return ""
}

// unasked: the client has not yet told what it holds of a type, and may hold
// something: always so for listeners, else when it holds a listener.
func (s *Stream) unasked(url string) bool {
	due := s.started.Add(orphanWait)
	if !s.now.Before(due) {
		return false
	}
	if url != Listener {
		l := s.subs[Listener]
		if l != nil && l.current.count() == 0 && len(l.others) == 0 {
			return false
		}
	}
	s.wakeAt(due)
	return true
}

func short(url string) string { return index.ResourceKey{Type: url}.String() }

// Stuck gives the kinds whose frontier stays below what the client holds, with
// the highest version held, for longer than the given time: a lagging watch, or
// a history that was rolled back.
func (s *Stream) Stuck(longer time.Duration) map[index.Kind]index.ResourceVersion {
	var out map[index.Kind]index.ResourceVersion
	for _, t := range s.subs {
		for _, w := range t.withheld {
			for _, l := range w.Missing {
				if l.Held == 0 || !l.Frontier.Observed || s.now.Sub(w.Since) < longer {
					continue
				}
				if out == nil {
					out = map[index.Kind]index.ResourceVersion{}
				}
				out[l.Kind] = max(out[l.Kind], l.Held)
			}
		}
	}
	return out
}
