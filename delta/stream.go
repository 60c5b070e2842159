package delta

import (
	"strconv"
	"time"

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

	// What the withheld wait for; see waiting.go.
	waiting  map[index.ResourceKey]map[index.ResourceKey]struct{} // blocker → blocked
	awaited  map[index.Kind]index.ResourceVersion
	timed    map[index.ResourceKey]struct{}
	deadline time.Time // the earliest at which something could change by itself
	due      time.Time // that of what is being decided
	guard    guarding
	without  []index.Kind // that it was started without: they kept failing
	settling int          // commits since caughtUp last looked
	complete bool         // every kind was complete, when last looked at

	// For traces; see event.go.
	events []*Event
	freed  index.Cause // the newest change of this step by which kinds moved

	// Made when needed, for one step.
	refs          *references
	brokenSecrets map[index.ResourceKey]index.ResourceKey
}

// Options of a stream.
type Options struct {
	// FreshEnvoyWait bounds how long a client that holds nothing waits for a kind
	// that keeps failing. 0 waits for ever.
	FreshEnvoyWait time.Duration
	// RemovalGrace is how long a cluster stays after the last route that used it
	// was acknowledged without it.
	RemovalGrace time.Duration
	// Guard is the removal guard.
	Guard Guard
	// Cause of what the client is sent because it asks for it, not because it
	// changed: the trace of the connection.
	Cause index.Cause
	// Events are collected, for the caller to take after each call.
	Events bool
}

// Response is one response to be sent.
type Response struct {
	Type   string
	Nonce  string
	Source *index.Snapshot // the snapshot that the versions are made from
	Send   []*index.Resource
	Remove []index.Proof
	// Causes are the traced changes that it carries, oldest first.
	Causes []index.Cause
	// Oldest is the revision of the oldest change that it carries; 0 for none.
	Oldest  index.Revision
	Revised index.Revision
}

// NewStream makes the machine of a client that has just connected.
func NewStream(snap *index.Snapshot, now time.Time, opts Options) *Stream {
	return &Stream{
		opts: opts, snap: snap, started: now, now: now,
		subs:    map[string]*subscription{},
		leaving: map[string]time.Time{},
		waiting: map[index.ResourceKey]map[index.ResourceKey]struct{}{},
		awaited: map[index.Kind]index.ResourceVersion{},
		timed:   map[index.ResourceKey]struct{}{},
	}
}

// Revision up to which the index was compared.
func (s *Stream) Revision() index.Revision { return s.snap.Revision() }

// Node is the node id that the client gave on its first message.
func (s *Stream) Node() string { return s.node }

// Deadline is when Tick is due; zero for never.
func (s *Stream) Deadline() time.Time { return s.deadline }

// Tick lets time pass.
func (s *Stream) Tick(now time.Time) []*Response {
	s.now, s.freed = now, index.Cause{}
	s.elapsed()
	return s.pump()
}

// Advance takes a newer snapshot.
func (s *Stream) Advance(now time.Time, snap *index.Snapshot) []*Response {
	s.now, s.freed = now, index.Cause{}
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
	seen := map[index.ResourceKey]struct{}{}
	for _, e := range entries {
		completeness = completeness || e.Completeness
		if e.Completeness && e.Cause.IsSampled() {
			s.freed = e.Cause
		}
		for _, k := range e.Changed {
			if _, again := seen[k]; !again {
				seen[k] = struct{}{}
				s.rebind(prev, k)
			}
			s.changed(k, origin{e.Cause, e.Revision})
		}
	}
	s.resourced(prev)
	if completeness {
		s.caughtUp()
		s.released(prev)
	}
	return s.pump()
}

// rebind moves what is recorded of a resource from its row in the previous
// snapshot to that in the present one: once, however often it changed between.
func (s *Stream) rebind(prev *index.Snapshot, k index.ResourceKey) {
	if t := s.subs[k.Type]; t != nil {
		t.rebind(k.Name, prev.Resource(k), s.snap.Resource(k), prev, s.snap)
	}
}

// changed takes in that a resource was made, changed or buried.
func (s *Stream) changed(k index.ResourceKey, c origin) {
	s.wake(k)
	t := s.subs[k.Type]
	if t == nil {
		return
	}
	now := s.snap.Resource(k)
	if now != nil && k.Type == Cluster {
		delete(s.leaving, k.Name)
	}
	if t.asked(k.Name, now) || t.holds(k.Name, now) {
		t.want(k.Name, ifChanged)
		t.because(k.Name, c)
	}
	s.changedAliases(t, k.Name, c)
}

// compareAll is changed for everything, when the log does not reach back.
func (s *Stream) compareAll(prev *index.Snapshot) {
	for url := range s.subs {
		for r := range prev.Resources(url) {
			if now := s.snap.Resource(r.ResourceKey); now != r {
				s.rebind(prev, r.ResourceKey)
				s.changed(r.ResourceKey, origin{revision: s.snap.Revision()})
			}
		}
		for r := range s.snap.Resources(url) {
			if prev.Resource(r.ResourceKey) == nil {
				s.rebind(prev, r.ResourceKey)
				s.changed(r.ResourceKey, origin{revision: s.snap.Revision()})
			}
		}
	}
	s.resourced(prev)
	s.caughtUp()
	s.released(prev)
}

// caughtUp turns what the client holds in a version of the same digest, but with
// a later vector than ours, into the current version once our frontiers have
// reached that vector. It only saves memory, and the time to look through it, so a
// small part of the commits do it, and that which completes the last kind: after a
// start there may be no other for hours.
func (s *Stream) caughtUp() {
	ahead := 0
	for _, t := range s.subs {
		ahead += len(t.ahead)
	}
	was := s.complete
	s.complete = complete(s.snap)
	if s.settling++; s.settling < ahead/64 && (was || !s.complete) {
		return
	}
	s.settling = 0
	for _, t := range s.subs {
		for name := range t.ahead {
			t.hold(name, t.others[name], s.snap.Resolve(t.key(name)), s.snap)
		}
	}
}

func complete(snap *index.Snapshot) bool {
	for _, row := range snap.Kinds() {
		if !row.Complete() {
			return false
		}
	}
	return true
}

// resourced: the source has another id. What the client brought along is read
// anew; what was sent under another id has become foreign.
func (s *Stream) resourced(prev *index.Snapshot) {
	if prev.Source() == s.snap.Source() {
		return
	}
	for _, t := range s.subs {
		for name, h := range t.others {
			switch {
			case h.version != "":
				h.token = s.snap.ParseToken(h.version)
			case prev.Source() != "":
				h.token = index.Token{Digest: h.token.Digest, Foreign: true}
			}
			t.hold(name, h, s.snap.Resolve(t.key(name)), s.snap)
		}
		for _, w := range t.withheld {
			s.reconsider(w)
		}
	}
}

func (s *Stream) nextNonce() string {
	s.nonce++
	return strconv.FormatUint(s.nonce, 10)
}
