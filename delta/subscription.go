package delta

import (
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// subscription is a client's state for one resource type: what it asks for, what
// it holds, and what is still to be decided.
type subscription struct {
	typeURL string

	// What the client asks for.
	wildcard bool
	known    bitset              // ordinals of explicit names that have a resource
	unknown  map[string]struct{} // explicit names that have none
	// aliases gives, for each resource that may answer for some of unknown, these.
	aliases  map[string]map[string]struct{}
	aliasing *index.Aliasing // nil as a rule; see alias.go
	// lent are the aliases that the client has, oldest first; recalled those that are
	// taken back.
	lent     []string
	recalled map[string]struct{}

	// What the client holds, moved by ACKs alone.
	current bitset             // ordinals of which the client holds the current digest
	others  map[string]holding // everything else that it holds
	// ahead are those of others that have the current digest and a later vector.
	ahead map[string]struct{}
	// doubtful names were in rejected responses, of which Envoy applies a part.
	doubtful map[string]*doubt

	// Still to be decided: names that changed, with what must be answered even if
	// unchanged.
	pending map[string]urgency
	swollen bool           // it held very many
	why     map[string]why // of what is pending or withheld
	told    map[string]told
	// Decided for now: names that the rule or the order holds back.
	withheld map[string]*Withheld
	// Held back by the removal guard, with how much of the type each is; and what
	// was lost within the last minute.
	guarded map[string]int
	lost    []loss
	// Rejected by the client, until the digest changes.
	quarantine map[string]quarantined
	// batches of names that are sent separately, to find what the client rejects.
	batches [][]string

	inFlight  *flight
	wholeBy   time.Time // until when a first response waits to be whole; set once it could be sent in part
	lastSent  time.Time
	firstSent time.Time
	answered  bool // a response was sent on this stream
	fresh     bool // the client held nothing of this type when it subscribed
	// The first response waits for what is under way: that many of the withheld.
	coming int
	gated  bool
	last   *flight // the newest response, if it carries traced changes
	status TypeStatus
}

// urgency of a pending name.
type urgency uint8

const (
	ifChanged urgency = iota
	// always: a name that was subscribed again, or endpoints behind their
	// cluster, is answered even when unchanged.
	always
)

// holding is a version that the client holds and that is not the current one.
type holding struct {
	token   index.Token
	version string          // as the client gave it in initial_resource_versions
	row     *index.Resource // as we sent it
}

type quarantined struct {
	digest  index.Digest
	sources []index.ObjectKey
	message string
}

func newSubscription(typeURL string, aliasing *index.Aliasing) *subscription {
	return &subscription{
		typeURL:    typeURL,
		unknown:    map[string]struct{}{},
		aliases:    map[string]map[string]struct{}{},
		aliasing:   aliasing,
		recalled:   map[string]struct{}{},
		others:     map[string]holding{},
		ahead:      map[string]struct{}{},
		doubtful:   map[string]*doubt{},
		pending:    map[string]urgency{},
		why:        map[string]why{},
		withheld:   map[string]*Withheld{},
		quarantine: map[string]quarantined{},
		status:     TypeStatus{Type: typeURL},
	}
}

func (t *subscription) key(name string) index.ResourceKey {
	return index.ResourceKey{Type: t.typeURL, Name: name}
}

// held gives what the client holds of a resource; nil for nothing. row is the
// index's current row, or nil.
func (t *subscription) held(name string, row *index.Resource, s *index.Snapshot) *index.Token {
	if row != nil && t.current.has(row.Ordinal) {
		tok := s.TokenOf(row)
		return &tok
	}
	if h, ok := t.others[name]; ok {
		return &h.token
	}
	return nil
}

// holds reports whether the client holds any version.
func (t *subscription) holds(name string, row *index.Resource) bool {
	if row != nil && t.current.has(row.Ordinal) {
		return true
	}
	_, ok := t.others[name]
	return ok
}

// asked reports whether the client asks for the name.
func (t *subscription) asked(name string, row *index.Resource) bool {
	if t.wildcard || (row != nil && t.known.has(row.Ordinal)) {
		return true
	}
	_, ok := t.unknown[name]
	return ok
}

func (t *subscription) subscribe(name string, row *index.Resource) {
	if row != nil && !row.Alias() {
		t.known.set(row.Ordinal)
		return
	}
	t.miss(name)
}

// hold records that the client holds a version of a resource: the row that was
// sent, or a token alone. It is the current one when the digest is the same and
// our view is at least as new as the one that it was made from: a replica that
// lags may have the same body now and go through another one yet.
func (t *subscription) hold(name string, h holding, now *index.Resource, s *index.Snapshot) {
	same := now != nil && !now.Alias() && now.Digest == h.token.Digest && !h.token.Formless
	if same && covers(s, now, &h.token) {
		t.holdCurrent(now)
		return
	}
	if now != nil {
		t.current.clear(now.Ordinal)
	}
	if same {
		t.ahead[name] = struct{}{}
	} else {
		delete(t.ahead, name)
	}
	t.others[name] = h
}

// holdCurrent records that the client holds the index's own row.
func (t *subscription) holdCurrent(now *index.Resource) {
	t.drop(now.Name, now)
	t.current.set(now.Ordinal)
}

// covers: for each kind that the held version rests on, the index has seen at
// least as much.
func covers(s *index.Snapshot, now *index.Resource, held *index.Token) bool {
	for _, h := range held.Vector {
		row := s.Kind(h.Kind)
		if row == nil || row.Frontier.Reaches(h.Version) {
			continue
		}
		b := now.Of(h.Kind)
		if h.Absent && h.Version == 0 && b.Need != 0 {
			continue // not complete then, and needed now as well
		}
		if !b.Known || b.Version < h.Version {
			return false
		}
	}
	return true
}

// drop records that the client holds nothing of a resource.
func (t *subscription) drop(name string, now *index.Resource) {
	delete(t.others, name)
	delete(t.ahead, name)
	if now != nil {
		t.current.clear(now.Ordinal)
	}
}

// want makes a name pending. What was withheld of a first response that must be
// whole may be free now.
func (t *subscription) want(name string, u urgency) {
	if w := t.withheld[name]; w != nil {
		t.gated = false
		u = max(u, w.urgency) // an answer that was owed is still owed
	}
	t.pending[name] = max(t.pending[name], u)
}

// inService: the client holds a version and was not told to drop it.
func (t *subscription) inService(name string, row *index.Resource) bool {
	if q := t.doubtful[name]; q != nil && q.removed {
		return false
	}
	return t.holds(name, row) && !t.beingRemoved(name)
}

// underway: the client will get the resource without anything else having to move.
func (t *subscription) underway(name string, row *index.Resource) bool {
	return !t.stopped(name) && t.asked(name, row)
}

// stopped: the name is withheld. One that is to be looked at again, once the response
// in flight is answered, may be free by now.
func (t *subscription) stopped(name string) bool {
	_, withheld := t.withheld[name]
	_, again := t.pending[name]
	return withheld && !again
}

// beingRemoved reports whether the response in flight takes the name away: what
// the client holds of it is good for nothing, even if the name is back by now.
func (t *subscription) beingRemoved(name string) bool {
	if t.inFlight == nil {
		return false
	}
	_, removed := t.inFlight.removed[name]
	return removed
}

// rebind moves what was recorded under the old row to the new one when a
// resource changes from one snapshot to the next.
func (t *subscription) rebind(name string, old, now *index.Resource, prev, next *index.Snapshot) {
	if old != nil && (now == nil || now.Ordinal != old.Ordinal) && t.known.has(old.Ordinal) {
		t.known.clear(old.Ordinal)
		t.miss(name)
	}
	if _, ok := t.unknown[name]; ok && now != nil {
		t.unmiss(name)
		t.known.set(now.Ordinal)
	}
	if old != nil && t.current.has(old.Ordinal) {
		t.current.clear(old.Ordinal)
		t.hold(name, holding{token: prev.TokenOf(old), row: old}, now, next)
	} else if h, ok := t.others[name]; ok {
		t.hold(name, h, now, next)
	}
	if q, ok := t.quarantine[name]; ok && (now == nil || now.Digest != q.digest) {
		delete(t.quarantine, name)
	}
}
