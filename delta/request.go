package delta

import (
	"maps"
	"slices"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/index"
)

// Request takes in a message of the client: a subscription, an ACK, a NACK, or
// several of these at once.
func (s *Stream) Request(now time.Time, req *discoveryv3.DeltaDiscoveryRequest) []*Response {
	s.now, s.freed = now, index.Cause{}
	if s.node == "" && req.GetNode() != nil {
		s.node = req.GetNode().GetId()
	}
	t := s.subs[req.GetTypeUrl()]
	if t == nil {
		s.first(req)
		return s.pump()
	}
	s.acknowledge(t, req)
	s.resubscribe(t, req)
	return s.pump()
}

// first is a type's first request on the stream. Spec, "Resource state on
// reconnect": initial_resource_versions lists what the client holds; only then.
func (s *Stream) first(req *discoveryv3.DeltaDiscoveryRequest) {
	t := newSubscription(req.GetTypeUrl(), aliasingOf(s.snap, req.GetTypeUrl()))
	s.subs[t.typeURL] = t
	s.introduced = s.now
	t.fresh = len(req.GetInitialResourceVersions()) == 0
	names := req.GetResourceNamesSubscribe()
	t.wildcard = len(names) == 0 && wildcardByDefault(t.typeURL)
	for _, name := range names {
		if name == "*" {
			t.wildcard = true
			continue
		}
		t.subscribe(name, s.snap.Resolve(t.key(name)))
		t.want(name, ifChanged)
	}
	s.asks(t, names)
	for name, version := range req.GetInitialResourceVersions() {
		row := s.snap.Resolve(t.key(name))
		if !t.asked(name, row) {
			continue // held for nobody: it goes by itself
		}
		t.hold(name, holding{token: s.snap.ParseToken(version), version: version}, row, s.snap)
		t.want(name, ifChanged)
		if row != nil {
			s.lend(t, row)
		}
		s.wake(t.key(name))
	}
	if t.wildcard {
		for r := range s.snap.Resources(t.typeURL) {
			if !t.current.has(r.Ordinal) {
				t.want(r.Name, ifChanged)
			}
		}
	}
	if c := s.subs[Cluster]; t.typeURL == Endpoints && c != nil && c.inFlight != nil {
		s.followUp(c, c.inFlight.sent) // clusters that were sent before endpoints were asked for
	}
	s.wake(index.ResourceKey{Type: t.typeURL})
}

// resubscribe takes in the names of a later request. Spec: a name that is
// subscribed again must be answered, even when unchanged.
func (s *Stream) resubscribe(t *subscription, req *discoveryv3.DeltaDiscoveryRequest) {
	for _, name := range req.GetResourceNamesUnsubscribe() {
		if name == "*" {
			s.endWildcard(t)
			continue
		}
		s.forget(t, name, s.snap.Resolve(t.key(name)))
		if t.wildcard {
			t.want(name, always) // Spec: still matched by the wildcard, so answered
		}
	}
	for _, name := range req.GetResourceNamesSubscribe() {
		if name == "*" {
			s.startWildcard(t)
			continue
		}
		t.subscribe(name, s.snap.Resolve(t.key(name)))
		t.want(name, always)
	}
	s.asks(t, req.GetResourceNamesSubscribe())
}

func (s *Stream) startWildcard(t *subscription) {
	if t.wildcard {
		return
	}
	t.wildcard, t.answered = true, false
	for r := range s.snap.Resources(t.typeURL) {
		if !t.current.has(r.Ordinal) {
			t.want(r.Name, ifChanged)
		}
	}
}

// endWildcard forgets everything that is not asked for by name.
func (s *Stream) endWildcard(t *subscription) {
	t.wildcard = false
	for r := range s.snap.Resources(t.typeURL) {
		if !t.known.has(r.Ordinal) {
			s.forget(t, r.Name, r)
		}
	}
	s.undoubt(t, slices.Collect(maps.Keys(t.doubtful)))
	for name := range t.others {
		if !t.asked(name, s.snap.Resolve(t.key(name))) {
			s.forget(t, name, nil)
		}
	}
}

// forget drops the name from what is asked for and from what is held.
func (s *Stream) forget(t *subscription, name string, row *index.Resource) {
	t.unmiss(name)
	t.unlend(name)
	if row != nil {
		t.known.clear(row.Ordinal)
	}
	if t.wildcard {
		return
	}
	t.drop(name, row)
	t.trusted(name)
	s.settle(t, name)
	s.wake(t.key(name)) // what it referred to may go
}
