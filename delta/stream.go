package delta

import (
	"strconv"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/index"
)

// Stream is the state machine of one client.
//
//	states    per type: not subscribed; idle; one response in flight
//	inputs    Request, Advance (a newer snapshot), Tick (time)
//	outputs   responses, in the order in which they are to be sent
type Stream struct {
	opts    Options
	snap    *index.Snapshot
	subs    map[string]*subscription
	started time.Time
	now     time.Time
	// introduced is when the client last asked for a type for the first time.
	introduced time.Time
	node       string
	nonce      uint64
	// leaving: clusters that nothing refers to any more, since when.
	leaving map[string]time.Time
	// wake is the earliest time at which something could change by itself.
	wake time.Time
}

// Options of a stream.
type Options struct {
	// FreshEnvoyWait bounds how long a client that holds nothing waits for a kind
	// that keeps failing. 0 waits for ever.
	FreshEnvoyWait time.Duration
	// RemovalGrace is how long a cluster stays after the last route that used it
	// was acknowledged without it.
	RemovalGrace time.Duration
}

// orphanWait is how long the order of types waits for a client to subscribe to
// clusters. Envoy does so first, except while a cluster warms (15 s at most).
const orphanWait = 20 * time.Second

// Response is one response to be sent.
type Response struct {
	Type    string
	Nonce   string
	Source  *index.Snapshot // the snapshot that the versions are made from
	Send    []*index.Resource
	Remove  []index.Proof
	Causes  []index.Cause
	Revised index.Revision
}

// NewStream makes the machine of a client that has just connected.
func NewStream(snap *index.Snapshot, now time.Time, opts Options) *Stream {
	return &Stream{
		opts: opts, snap: snap, started: now, now: now,
		subs:    map[string]*subscription{},
		leaving: map[string]time.Time{},
	}
}

// Revision up to which the index was compared.
func (s *Stream) Revision() index.Revision { return s.snap.Revision() }

// Node is the node id that the client gave on its first message.
func (s *Stream) Node() string { return s.node }

// Deadline is when Tick is due; zero for never.
func (s *Stream) Deadline() time.Time { return s.wake }

// Tick lets time pass.
func (s *Stream) Tick(now time.Time) []*Response {
	s.now, s.wake = now, time.Time{}
	for _, t := range s.subs {
		t.reconsider(func(*Withheld) bool { return true })
	}
	return s.pump()
}

// Advance takes a newer snapshot.
func (s *Stream) Advance(now time.Time, snap *index.Snapshot) []*Response {
	s.now = now
	prev := s.snap
	if snap.Revision() <= prev.Revision() {
		return nil
	}
	s.snap = snap
	entries, ok := snap.Changes(prev.Revision())
	if !ok {
		s.compareAll(prev)
		return s.pump()
	}
	completeness := false
	for _, e := range entries {
		completeness = completeness || e.Completeness
		for _, k := range e.Changed {
			s.changed(prev, k, e.Cause)
		}
	}
	if completeness {
		s.caughtUp()
		s.released()
	}
	return s.pump()
}

// changed takes in that a resource was made, changed or buried.
func (s *Stream) changed(prev *index.Snapshot, k index.ResourceKey, cause index.Cause) {
	t := s.subs[k.Type]
	if t == nil {
		return
	}
	now := s.snap.Resource(k)
	t.rebind(k.Name, prev.Resource(k), now, prev, s.snap)
	if t.asked(k.Name, now) || t.holds(k.Name, now) {
		t.want(k.Name, ifChanged)
		t.because(cause)
	}
}

// compareAll is changed for everything, when the log does not reach back.
func (s *Stream) compareAll(prev *index.Snapshot) {
	for url := range s.subs {
		for r := range prev.Resources(url) {
			if now := s.snap.Resource(r.ResourceKey); now != r {
				s.changed(prev, r.ResourceKey, index.Cause{})
			}
		}
		for r := range s.snap.Resources(url) {
			if prev.Resource(r.ResourceKey) == nil {
				s.changed(prev, r.ResourceKey, index.Cause{})
			}
		}
	}
	s.caughtUp()
	s.released()
}

// caughtUp turns what the client holds in a version of the same digest, but with
// a later vector than ours, into the current version once our frontiers have
// reached that vector.
func (s *Stream) caughtUp() {
	for _, t := range s.subs {
		for name, h := range t.others {
			if now := s.snap.Resource(t.key(name)); now != nil && now.Digest == h.token.Digest {
				t.hold(name, h, now, s.snap)
			}
		}
	}
}

// released looks again at what was withheld for kinds that are complete by now.
func (s *Stream) released() {
	for _, t := range s.subs {
		t.reconsider(func(w *Withheld) bool {
			for _, l := range w.Missing {
				row := s.snap.Kind(l.Kind)
				if row != nil && row.Complete() && (!row.Frontier.Observed || row.Frontier.Version >= l.Held) {
					return true
				}
			}
			return len(w.Missing) == 0
		})
		if !t.answered && t.wildcard {
			t.reconsider(func(*Withheld) bool { return true })
		}
	}
}

// reconsider makes withheld names pending again.
func (t *subscription) reconsider(which func(*Withheld) bool) {
	for name, w := range t.withheld {
		if which(w) {
			t.want(name, w.urgency)
		}
	}
}

func (t *subscription) because(c index.Cause) {
	const most = 64
	if c.IsValid() && len(t.causes) < most {
		t.causes = append(t.causes, c)
	}
}

func (s *Stream) nextNonce() string {
	s.nonce++
	return strconv.FormatUint(s.nonce, 10)
}

// Request takes in a message of the client: a subscription, an ACK, a NACK, or
// several of these at once.
func (s *Stream) Request(now time.Time, req *discoveryv3.DeltaDiscoveryRequest) []*Response {
	s.now = now
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
	t := newSubscription(req.GetTypeUrl())
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
		t.subscribe(name, s.snap.Resource(t.key(name)))
		t.want(name, ifChanged)
	}
	for name, version := range req.GetInitialResourceVersions() {
		token := s.snap.ParseToken(version)
		row := s.snap.Resource(t.key(name))
		t.hold(name, holding{token: token}, row, s.snap)
		t.want(name, ifChanged)
	}
	if t.wildcard {
		for r := range s.snap.Resources(t.typeURL) {
			if !t.current.has(r.Ordinal) {
				t.want(r.Name, ifChanged)
			}
		}
	}
}

// resubscribe takes in the names of a later request. Spec: a name that is
// subscribed again must be answered, even when unchanged.
func (s *Stream) resubscribe(t *subscription, req *discoveryv3.DeltaDiscoveryRequest) {
	for _, name := range req.GetResourceNamesUnsubscribe() {
		if name == "*" {
			s.endWildcard(t)
			continue
		}
		t.forget(name, s.snap.Resource(t.key(name)))
		if t.wildcard {
			t.want(name, always) // Spec: still matched by the wildcard, so answered
		}
	}
	for _, name := range req.GetResourceNamesSubscribe() {
		if name == "*" {
			s.startWildcard(t)
			continue
		}
		t.subscribe(name, s.snap.Resource(t.key(name)))
		t.want(name, always)
	}
}

func (s *Stream) startWildcard(t *subscription) {
	t.wildcard, t.answered = true, false
	for r := range s.snap.Resources(t.typeURL) {
		t.want(r.Name, ifChanged)
	}
}

// endWildcard forgets everything that is not asked for by name.
func (s *Stream) endWildcard(t *subscription) {
	t.wildcard = false
	for r := range s.snap.Resources(t.typeURL) {
		if !t.known.has(r.Ordinal) {
			t.forget(r.Name, r)
		}
	}
	for name := range t.others {
		if !t.asked(name, s.snap.Resource(t.key(name))) {
			t.forget(name, nil)
		}
	}
}
