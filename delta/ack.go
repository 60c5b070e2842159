package delta

import (
	"slices"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/index"
)

// acknowledge takes in the answer to the response in flight. A nonce that is not
// that response's is stale: the request's names count, its verdict does not.
func (s *Stream) acknowledge(t *subscription, req *discoveryv3.DeltaDiscoveryRequest) {
	f := t.inFlight
	if f == nil || req.GetResponseNonce() != f.nonce {
		return
	}
	t.inFlight = nil
	if req.GetErrorDetail() != nil {
		t.status.Nacks++
		s.rejected(t, f, req.GetErrorDetail().GetMessage())
	} else {
		t.status.Acks++
		s.accepted(t, f)
	}
	// Routes may have waited for this.
	for _, other := range s.subs {
		other.reconsider(func(w *Withheld) bool { return len(w.Missing) == 0 })
	}
}

func (s *Stream) accepted(t *subscription, f *flight) {
	for _, r := range f.sent {
		now := s.snap.Resource(r.ResourceKey)
		if !t.asked(r.Name, now) {
			continue // unsubscribed meanwhile
		}
		t.hold(r.Name, holding{token: s.snap.TokenOf(r), row: r}, now, s.snap)
		if now != r {
			t.want(r.Name, ifChanged) // changed again meanwhile
		}
	}
	for _, name := range f.removed {
		now := s.snap.Resource(t.key(name))
		t.drop(name, now)
		if now != nil && t.asked(name, now) {
			t.want(name, ifChanged)
		}
	}
}

// rejected finds the culprit by sending the parts of the response again, each
// resource at most log2 of the batch plus one times. A culprit that stands alone
// is quarantined until its digest, that is one of its source objects, changes.
// Nothing is held as sent: Envoy may have applied the valid siblings of a
// rejected response, or none.
func (s *Stream) rejected(t *subscription, f *flight, message string) {
	names := append(f.names(), f.removed...)
	if len(names) > 1 {
		t.batches = append(split(names, message), t.batches...)
		return
	}
	for _, r := range f.sent {
		t.quarantine[r.Name] = quarantined{digest: r.Digest, sources: r.Sources, message: message}
	}
	for _, name := range f.removed {
		t.quarantine[name] = quarantined{message: message}
	}
	for _, name := range names {
		t.want(name, ifChanged)
	}
}

func (f *flight) names() []string {
	names := make([]string, 0, len(f.sent))
	for _, r := range f.sent {
		names = append(names, r.Name)
	}
	return names
}

// split parts the names in two. Envoy's message often names the culprit; those
// named go first.
func split(names []string, message string) [][]string {
	named, rest := partition(names, func(n string) bool { return strings.Contains(message, n) })
	if len(named) == 0 || len(rest) == 0 {
		half := len(names) / 2
		named, rest = names[:half], names[half:]
	}
	return [][]string{slices.Clone(named), slices.Clone(rest)}
}

func partition(names []string, first func(string) bool) (a, b []string) {
	for _, n := range names {
		if first(n) {
			a = append(a, n)
		} else {
			b = append(b, n)
		}
	}
	return a, b
}

// barred reports whether the client has rejected this very version.
func (t *subscription) barred(r *index.Resource) bool {
	q, ok := t.quarantine[r.Name]
	return ok && q.digest == r.Digest
}
