package delta

import (
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// Holding is what a client has of one resource, as far as its ACKs tell.
type Holding struct {
	// Asked: the client asks for it, by name or by a wildcard.
	Asked bool `json:"asked"`
	// Version is the token that the client holds; empty when it holds nothing.
	Version string `json:"version,omitempty"`
	// Current: the same body as the index's.
	Current bool `json:"current"`
	// Sending and Removing: a response with the resource, or its removal, was
	// sent at Sent and is not answered.
	Sending  bool      `json:"sending,omitempty"`
	Removing bool      `json:"removing,omitempty"`
	Sent     time.Time `json:"sent,omitzero"`
	// Busy: the stream had no time to tell; nothing else is set.
	Busy bool `json:"busy,omitempty"`
	// Pending: it changed, and is decided when the response in flight is answered.
	Pending     bool         `json:"pending,omitempty"`
	Withheld    *Withheld    `json:"withheld,omitempty"`
	Quarantined *Quarantined `json:"quarantined,omitempty"`
}

// Holder is a connected client and what it has of one resource.
type Holder struct {
	Stream uint64 `json:"stream"`
	Node   string `json:"node"`
	Peer   string `json:"peer"`
	Holding
}

// Holding tells what the client has of one resource. ok is false when the client
// has not asked for the type at all.
func (s *Stream) Holding(k index.ResourceKey) (h Holding, ok bool) {
	t := s.subs[k.Type]
	if t == nil {
		return Holding{}, false
	}
	row := s.snap.Resolve(k)
	h.Asked = t.asked(k.Name, row)
	h.Version, h.Current = t.version(k.Name, row, s.snap)
	_, h.Pending = t.pending[k.Name]
	if w := t.withheld[k.Name]; w != nil && !h.Pending {
		c := *w
		h.Withheld = &c
	}
	if q, ok := t.quarantine[k.Name]; ok {
		h.Quarantined = &Quarantined{Resource: k, Sources: q.sources, Message: q.message}
	}
	if t.inFlight != nil {
		h.Sending, h.Removing = t.inFlight.sends(k.Name), t.beingRemoved(k.Name)
	}
	if h.Sending || h.Removing {
		h.Sent = t.lastSent
	}
	return h, true
}

func (f *flight) sends(name string) bool {
	for _, r := range f.sent {
		if r.Name == name {
			return true
		}
	}
	return false
}

// version gives the token of what the client holds, as it was sent or as the
// client told it, and whether the body is the index's current one.
func (t *subscription) version(name string, row *index.Resource, s *index.Snapshot) (token string, current bool) {
	if row != nil && t.current.has(row.Ordinal) {
		return s.Token(row), true
	}
	h, held := t.others[name]
	switch {
	case !held:
		return "", false
	case h.version != "":
		token = h.version
	case h.row != nil:
		token = s.Token(h.row)
	}
	return token, row != nil && !h.token.Formless && row.Digest == h.token.Digest
}

// Inventory is everything that a client holds of one type, at one moment. It is
// a copy, so that it can be read while the stream goes on.
type Inventory struct {
	snap    *index.Snapshot
	typeURL string
	current bitset
	others  map[string]string // name → version
	// Unsettled names are on their way, or held back: the client may have them or not.
	Unsettled map[string]struct{}
	// Gone names are asked for by name, have no resource, and nothing of them is held
	// by the ACKs. Envoy goes on asking for what a draining listener refers to and keeps
	// it meanwhile: it ignores the removal of routes, endpoints and secrets.
	Gone map[string]struct{}
}

// Inventory copies what the client holds of a type; nil when the client has not
// asked for the type.
func (s *Stream) Inventory(typeURL string) *Inventory {
	t := s.subs[typeURL]
	if t == nil {
		return nil
	}
	v := &Inventory{
		snap: s.snap, typeURL: typeURL, current: bitset{words: append([]uint64(nil), t.current.words...)},
		others: make(map[string]string, len(t.others)), Unsettled: map[string]struct{}{},
		Gone: map[string]struct{}{},
	}
	for name := range t.unknown {
		if s.snap.Resolve(t.key(name)) == nil && !t.holds(name, nil) {
			v.Gone[name] = struct{}{}
		}
	}
	for name := range t.others {
		v.others[name], _ = t.version(name, s.snap.Resolve(t.key(name)), s.snap)
	}
	for name := range t.pending {
		v.Unsettled[name] = struct{}{}
	}
	for name := range t.doubtful {
		v.Unsettled[name] = struct{}{}
	}
	if t.inFlight != nil {
		for _, name := range t.inFlight.names() {
			v.Unsettled[name] = struct{}{}
		}
	}
	return v
}

// Versions gives what the client holds, name by name. Two tokens with the same
// digest are the same body.
func (v *Inventory) Versions() map[string]string {
	out := make(map[string]string, len(v.others))
	for r := range v.snap.Resources(v.typeURL) {
		if v.current.has(r.Ordinal) {
			out[r.Name] = v.snap.Token(r)
		}
	}
	for name, version := range v.others {
		out[name] = version
	}
	return out
}
