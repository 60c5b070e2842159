package delta

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// StreamStatus is what a person may see of one connected client.
type StreamStatus struct {
	ID        uint64         `json:"id"`
	Node      string         `json:"node"` // the node id that the client gave
	Peer      string         `json:"peer"` // its address
	Connected time.Time      `json:"connected"`
	Revision  index.Revision `json:"revision"` // up to which the index was compared
	// Busy: the stream had no time to tell; this is what it told before.
	Busy  bool         `json:"busy,omitempty"`
	Types []TypeStatus `json:"types"`
	// StartedWithout are the kinds that kept failing when this client, which held
	// nothing, was given what was known: it lacks what rests on them.
	StartedWithout []index.Kind `json:"startedWithout,omitempty"`
}

// Status gives the machine's part of the stream's status.
func (s *Stream) Status() StreamStatus {
	out := StreamStatus{Node: s.node, Connected: s.started, Revision: s.snap.Revision(), StartedWithout: s.StartedWithout()}
	for _, url := range s.urls() {
		out.Types = append(out.Types, s.subs[url].snapshotStatus())
	}
	return out
}

// StartedWithout gives the kinds for which the client, which held nothing, waits no
// longer, as far as they are not complete by now.
func (s *Stream) StartedWithout() []index.Kind {
	var out []index.Kind
	for _, k := range s.without {
		if row := s.snap.Kind(k); row == nil || !row.Complete() {
			out = append(out, k)
		}
	}
	return out
}

// plainStatus is the status without what is withheld.
func (t *subscription) plainStatus() TypeStatus {
	st := t.status
	st.Wildcard = t.wildcard
	st.Pending = len(t.pending)
	st.Subscribed = t.known.count() + len(t.unknown)
	st.Held = t.current.count() + len(t.others)
	if t.inFlight != nil {
		st.InFlight = len(t.inFlight.sent) + len(t.inFlight.removed)
		st.InFlightSince = t.lastSent
	}
	for name, q := range t.quarantine {
		st.Quarantined = append(st.Quarantined, Quarantined{Resource: t.key(name), Sources: q.sources, Message: q.message})
	}
	slices.SortFunc(st.Quarantined, func(a, b Quarantined) int { return strings.Compare(a.Resource.Name, b.Resource.Name) })
	return st
}

func (t *subscription) snapshotStatus() TypeStatus {
	st := t.plainStatus()
	for name, w := range t.withheld {
		if _, again := t.pending[name]; !again { // else it is decided anew when its turn comes
			st.Withheld = append(st.Withheld, *w)
		}
	}
	st.WithheldTotal = len(st.Withheld)
	slices.SortFunc(st.Withheld, func(a, b Withheld) int { return strings.Compare(a.Resource.Name, b.Resource.Name) })
	return st
}

// TypeStatus is a stream's state for one resource type.
type TypeStatus struct {
	Type       string `json:"type"` // type URL
	Subscribed int    `json:"subscribed"`
	Wildcard   bool   `json:"wildcard"`
	Held       int    `json:"held"` // resources that the client has acknowledged
	InFlight   int    `json:"inFlight"`
	// InFlightSince is when the response that is not answered yet was sent.
	InFlightSince time.Time `json:"inFlightSince,omitzero"`
	// Pending resources changed, and are decided when that response is answered.
	Pending int `json:"pending"`
	// Counters since the stream began.
	Responses uint64 `json:"responses"`
	Resources uint64 `json:"resources"`
	Removed   uint64 `json:"removed"`
	Bytes     uint64 `json:"bytes"`
	Acks      uint64 `json:"acks"`
	Nacks     uint64 `json:"nacks"`

	Withheld []Withheld `json:"withheld,omitempty"`
	// WithheldTotal counts what is withheld, of which Withheld may list a part.
	WithheldTotal int `json:"withheldTotal"`
	// Groups sum up all that is withheld; see Stream.Summary.
	Groups      []WithheldGroup `json:"groups,omitempty"`
	Quarantined []Quarantined   `json:"quarantined,omitempty"`
}

// WithheldCount gives the number of what is withheld, which Withheld may list in part.
func (t *TypeStatus) WithheldCount() int { return max(t.WithheldTotal, len(t.Withheld)) }

// Withheld is a send or a removal that the rule does not allow yet.
type Withheld struct {
	Resource index.ResourceKey `json:"resource"`
	Action   string            `json:"action"` // "send" or "remove"
	Reason   string            `json:"reason"`
	Missing  []index.Lack      `json:"missing,omitempty"`
	Since    time.Time         `json:"since"`

	// For the machine: see waiting.go.
	urgency urgency
	on      []index.ResourceKey
	due     time.Time
	coming  bool
}

// Class is the reason without what sets one resource apart from the next: the
// name that it waits for, or the client's words. It groups what is withheld alike.
func (w *Withheld) Class() string {
	if strings.HasPrefix(w.Reason, rejectedByClient) {
		return strings.TrimSuffix(rejectedByClient, ": ")
	}
	if w.Guarded() {
		return guardedWords
	}
	out := w.Reason
	for _, on := range w.on {
		if on.Name != "" {
			out = strings.Replace(out, on.String(), "a "+short(on.Type), 1)
		}
	}
	return out
}

// Guarded: the removal guard holds it back, and a person can let it go.
func (w *Withheld) Guarded() bool { return strings.HasPrefix(w.Reason, guardedWords) }

// Quarantined is a resource that the client rejected.
type Quarantined struct {
	Resource index.ResourceKey `json:"resource"`
	Sources  []index.ObjectKey `json:"sources,omitempty"`
	Message  string            `json:"message"` // the client's words
}
