package delta

import (
	"slices"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/index"
)

// flight is a response that was sent and not yet answered.
type flight struct {
	nonce   string
	sent    []*index.Resource
	removed map[string]struct{}
	// urgent names are owed an answer even when unchanged.
	urgent map[string]struct{}
	// why some of it was sent; of what is traced alone.
	why     map[string]why
	reasons map[string]map[string]why // see reasonsFor
}

// names of what was sent and removed, sorted.
func (f *flight) names() []string {
	names := make([]string, 0, len(f.sent)+len(f.removed))
	for _, r := range f.sent {
		names = append(names, r.Name)
	}
	for name := range f.removed {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

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
	for _, name := range f.names() {
		s.wake(t.key(name))
	}
}

func (s *Stream) accepted(t *subscription, f *flight) {
	for _, r := range f.sent {
		t.trusted(r.Name)
		now := s.snap.Resolve(r.ResourceKey)
		if !t.asked(r.Name, now) {
			continue // unsubscribed meanwhile
		}
		if now == r && !r.Alias() {
			t.holdCurrent(r)
		} else {
			t.hold(r.Name, holding{token: s.snap.TokenOf(r), row: r}, now, s.snap)
		}
		s.lend(t, r)
		if now != r {
			t.want(r.Name, ifChanged) // changed again meanwhile
		}
	}
	for name := range f.removed {
		t.trusted(name)
		now := s.snap.Resolve(t.key(name))
		t.drop(name, now)
		if _, recalled := t.recalled[name]; recalled {
			s.forget(t, name, now) // it asks again when it needs it
			continue
		}
		if now != nil && t.asked(name, now) {
			t.want(name, ifChanged)
		}
	}
}

// trusted: the client took the newest that it was sent of the name.
func (t *subscription) trusted(name string) {
	delete(t.quarantine, name)
	delete(t.doubtful, name)
}

// rejected finds the culprit by sending the parts of the response again, each
// resource at most log2 of the batch plus one times. A culprit that stands alone
// is quarantined until its digest, that is one of its source objects, changes.
// Nothing is held as sent: Envoy may have applied the valid siblings of a
// rejected response, or none.
func (s *Stream) rejected(t *subscription, f *flight, message string) {
	names := f.names()
	for _, name := range names {
		urge := ifChanged
		if _, urgent := f.urgent[name]; urgent {
			urge = always
		}
		t.want(name, urge)
	}
	t.again(f)
	if len(names) > 1 {
		t.batches = append(split(names, message), t.batches...)
		t.doubt(f)
		s.undoubt(t, names)
		return
	}
	for _, r := range f.sent {
		t.quarantine[r.Name] = quarantined{digest: r.Digest, sources: r.Sources, message: message}
		s.tellQuarantined(t, r.Name, f.nonce, message)
		t.clear(r.Name, func(d *doubt) {
			d.rows = slices.DeleteFunc(d.rows, func(x *index.Resource) bool { return x.Digest == r.Digest })
		})
	}
	for name := range f.removed {
		t.quarantine[name] = quarantined{message: message}
		s.tellQuarantined(t, name, f.nonce, message)
		t.clear(name, func(d *doubt) { d.removed = false })
	}
}

// doubt is what may be live at the client though it rejected the response that it
// was in: until the client takes a version of the name it is not known what it has,
// so it is answered even when it seems to have the current version, and what the
// rows refer to may be in use.
type doubt struct {
	rows    []*index.Resource
	removed bool
}

func (t *subscription) doubt(f *flight) {
	of := func(name string) *doubt {
		if t.doubtful[name] == nil {
			t.doubtful[name] = &doubt{}
		}
		return t.doubtful[name]
	}
	for _, r := range f.sent {
		d := of(r.Name)
		if !slices.ContainsFunc(d.rows, func(x *index.Resource) bool { return x.Digest == r.Digest }) {
			d.rows = append(d.rows, r)
		}
	}
	for name := range f.removed {
		of(name).removed = true
	}
}

// undoubt: what the client has unsubscribed from meanwhile it has dropped.
func (s *Stream) undoubt(t *subscription, names []string) {
	for _, name := range names {
		if !t.asked(name, s.snap.Resolve(t.key(name))) {
			delete(t.doubtful, name)
		}
	}
}

// suspected gives what the client may hold of a resource though it rejected it: that
// has to be taken from it like anything else.
func (t *subscription) suspected(name string, s *index.Snapshot) *index.Token {
	d := t.doubtful[name]
	if d == nil || len(d.rows) == 0 {
		return nil
	}
	tok := s.TokenOf(d.rows[len(d.rows)-1])
	return &tok
}

// clear removes a doubt: what is rejected alone is not applied.
func (t *subscription) clear(name string, edit func(*doubt)) {
	d := t.doubtful[name]
	if d == nil {
		return
	}
	edit(d)
	if len(d.rows) == 0 && !d.removed {
		delete(t.doubtful, name)
	}
}

// split parts the names, at least in two. Envoy's message often names the culprit;
// those named go first.
func split(names []string, message string) [][]string {
	// A message can have a dump of the whole resource in it.
	const most = 4096
	message = message[:min(len(message), most)]
	half := (len(names) + 1) / 2
	named, rest := partition(names, func(n string) bool { return strings.Contains(message, n) })
	if len(named) == 0 || len(rest) == 0 {
		named, rest = names[:half], names[half:]
	}
	return slices.Concat(chunks(named, half), chunks(rest, half))
}

func chunks(names []string, most int) [][]string { return slices.Collect(slices.Chunk(names, most)) }

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
	if r == nil {
		return false
	}
	q, ok := t.quarantine[r.Name]
	return ok && q.digest == r.Digest
}
