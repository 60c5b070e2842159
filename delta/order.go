package delta

import (
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// Make before break. A route leaves when the clusters and endpoints that it uses
// were acknowledged; removal.go has the other half: a cluster is removed when the
// routes that used it were acknowledged without it, plus a grace. Facts about Envoy
// behind this: RDS to a warming or unknown cluster is applied and answers 503;
// after a cluster update Envoy waits for endpoints without asking for them; a
// listener that names a missing secret or RouteConfiguration blocks the whole
// listener; an on-demand certificate makes handshakes succeed, whether or not there
// are routes.

// orphanWait is how long the order of types waits for a client to subscribe to
// clusters. Envoy does so first, except while a cluster warms (15 s at most).
const orphanWait = 20 * time.Second

// notYet says why a resource has to wait for others.
func (s *Stream) notYet(r *index.Resource, held bool) delay {
	switch r.Type {
	case Cluster:
		return s.clusterNotYet(r)
	case RouteConfiguration:
		return s.routeNotYet(r, held)
	case ScopedRoutes, Listener:
		return s.referrerNotYet(r)
	case Secret:
		return s.secretNotYet(r, held)
	default:
		return delay{}
	}
}

// clusterNotYet: a cluster whose endpoints (or secret) can't be sent would warm for
// nothing (15 s), and hold back every other cluster's ACK meanwhile.
func (s *Stream) clusterNotYet(r *index.Resource) delay {
	for _, ref := range r.Refs {
		if ref.Type != Endpoints && ref.Type != Secret {
			continue
		}
		if s.mayHoldUntold(ref.Type) {
			return delay{why: unacquainted, on: []index.ResourceKey{{Type: ref.Type}}, coming: true}
		}
		on := []index.ResourceKey{ref}
		v := s.verdict(ref)
		if v.Action == Withhold || v.Action == Remove {
			return delay{why: "waits for " + ref.String(), on: on, missing: v.Missing}
		}
		if t := s.subs[ref.Type]; t != nil && t.barred(v.Resource) {
			return delay{why: "waits for " + ref.String() + ", which the client rejected", on: on}
		}
	}
	return delay{}
}

// mayHoldUntold: a client that came back with clusters has not yet told which
// endpoints it holds. They may be of a version that can't be sent again for now.
func (s *Stream) mayHoldUntold(url string) bool {
	return url == Endpoints && s.subs[url] == nil && !s.subs[Cluster].fresh && !s.acquainted()
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
func (s *Stream) routeNotYet(r *index.Resource, held bool) delay {
	for _, ref := range r.Refs {
		if ref.Type != Cluster {
			continue
		}
		if d := s.clusterAbsent(ref, held); d.why != "" {
			return d
		}
	}
	return delay{}
}

// clusterAbsent says why a route must not use a cluster yet. A cluster that the
// client rejected keeps the old route in service; a client without an old route
// gets the new one, whose other routes work.
func (s *Stream) clusterAbsent(k index.ResourceKey, held bool) delay {
	row := s.snap.Resource(k)
	if row == nil {
		if held {
			return delay{why: "waits for " + k.String(), on: []index.ResourceKey{k}}
		}
		return delay{}
	}
	t := s.subs[Cluster]
	switch {
	case t == nil:
		return s.orphan(Cluster, s.started)
	case t.inService(k.Name, row):
		return s.endpointsAbsent(row, t)
	case t.barred(row) && !held:
		return delay{}
	default:
		return delay{why: "waits for " + k.String(), on: []index.ResourceKey{k}, coming: t.underway(k.Name, row)}
	}
}

func (s *Stream) endpointsAbsent(cluster *index.Resource, t *subscription) delay {
	for _, ref := range cluster.Refs {
		if ref.Type != Endpoints {
			continue
		}
		e := s.subs[Endpoints]
		if e == nil {
			return s.orphan(Endpoints, t.lastSent)
		}
		if !e.inService(ref.Name, s.snap.Resource(ref)) {
			return delay{why: "waits for " + ref.String(), on: []index.ResourceKey{ref, cluster.ResourceKey}, coming: !e.stopped(ref.Name)}
		}
	}
	return delay{}
}

// orphan bounds the wait for a client that does not subscribe to a type at all.
func (s *Stream) orphan(url string, since time.Time) delay {
	due := since.Add(orphanWait)
	if !s.now.Before(due) {
		return delay{}
	}
	s.wakeAt(due)
	return delay{why: "waits for the client to ask for " + short(url), on: []index.ResourceKey{{Type: url}}, coming: true}
}

// referrerNotYet: scopes and listeners make Envoy ask for RouteConfigurations
// and secrets, so all of these must be ready to be answered.
func (s *Stream) referrerNotYet(r *index.Resource) delay {
	for _, ref := range r.Refs {
		if d := s.referentNotYet(ref); d.why != "" {
			d.on = append(d.on, ref)
			return d
		}
	}
	return delay{}
}

func (s *Stream) referentNotYet(ref index.ResourceKey) delay {
	target := s.snap.Resource(ref)
	if target == nil && ref.Type == Secret {
		return delay{} // broken, and kept in service for those who hold an older version
	}
	if target == nil {
		return delay{why: "waits for " + ref.String()}
	}
	if t := s.subs[ref.Type]; t != nil && t.inService(ref.Name, target) {
		return delay{}
	}
	if v := s.verdict(ref); v.Action == Withhold {
		return delay{why: "waits for " + ref.String(), missing: v.Missing}
	}
	if ref.Type == RouteConfiguration {
		return s.routeNotYet(target, false)
	}
	return delay{}
}

// secretNotYet: once the certificate of an on-demand host is there its handshakes
// succeed, so the host's routes go first.
func (s *Stream) secretNotYet(r *index.Resource, held bool) delay {
	if held {
		return delay{}
	}
	for _, ref := range r.Refs {
		row, t := s.snap.Resource(ref), s.subs[ref.Type]
		switch {
		case row == nil:
		case t == nil:
			if d := s.orphan(ref.Type, s.started); d.why != "" {
				return d
			}
		case !t.inService(ref.Name, row) && !t.barred(row):
			return delay{why: "waits for " + ref.String(), on: []index.ResourceKey{ref}}
		}
	}
	return delay{}
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
				e.inherit(ref.Name, t.inFlight.why[r.Name])
			}
		}
	}
}

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
