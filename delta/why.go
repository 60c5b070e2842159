package delta

import (
	"slices"

	"github.com/holdfast-xds/holdfast/index"
)

// For each name that is to be decided, the machine remembers which changes led
// to it: a response says which it carries, and what is withheld is told on the
// trace of the change behind it.
//
//	changed ──▶ because(name) ──▶ withhold: Event ──▶ emit: Response.Causes
//	                                  └── rejected: because, once more
//
// A name that became pending by a request of the client has no why of its own: its
// cause is Options.Cause, the connection.

// why a name is pending.
type why struct {
	// since is the revision of the oldest change.
	since index.Revision
	// traced are the changes that are being traced, oldest first. A change that is
	// not traced leaves no more than since.
	traced []origin
}

// origin is a change that is being traced.
type origin struct {
	cause    index.Cause
	revision index.Revision
}

const (
	maxOrigins = 4  // kept for one name: the first ones and the newest
	maxCauses  = 64 // of one response: the newest
	// maxCarried bounds the responses that remember the reason of each of their
	// names: not those with which a client starts.
	maxCarried = 1024
)

// because records a change that made a name pending.
func (t *subscription) because(name string, c origin) {
	w := t.why[name]
	if w.since == 0 {
		w.since = c.revision
	}
	if c.cause.IsSampled() {
		w.traced = join(w.traced, c)
	}
	t.why[name] = w
}

func join(traced []origin, c origin) []origin {
	if n := len(traced); n > 0 && traced[n-1].cause.SpanID() == c.cause.SpanID() {
		return traced
	}
	if len(traced) < maxOrigins {
		return append(traced, c)
	}
	return append(slices.Clone(traced[:maxOrigins-1]), c)
}

// inherit: the name is pending for the same reasons as another resource.
func (t *subscription) inherit(name string, from why) {
	if from.since == 0 {
		return
	}
	w := t.why[name]
	if w.since == 0 || from.since < w.since {
		w.since = from.since
	}
	for _, c := range from.traced {
		w.traced = join(w.traced, c)
	}
	t.why[name] = w
}

// newest gives the newest traced change behind a name; the zero Cause when there
// is none.
func (s *Stream) newest(t *subscription, name string) index.Cause {
	w, ok := t.why[name]
	switch {
	case !ok:
		return s.opts.Cause
	case len(w.traced) == 0:
		return index.Cause{}
	}
	return w.traced[len(w.traced)-1].cause
}

// carry moves the reasons of what is sent from the subscription to the response
// and its flight, which needs them again if it is rejected.
func (s *Stream) carry(t *subscription, r *Response, f *flight) {
	var traced []origin
	names := r.names()
	asked := len(names) == 0 // an answer that there is nothing
	for _, name := range names {
		w, ok := t.why[name]
		if !ok {
			asked = true
			continue
		}
		if r.Oldest == 0 || w.since < r.Oldest {
			r.Oldest = w.since
		}
		if len(w.traced) == 0 {
			continue
		}
		traced = appendNewest(traced, w.traced)
		if len(names) <= maxCarried {
			f.because(name, w)
		}
	}
	if asked && s.opts.Cause.IsSampled() {
		traced = append(traced, origin{cause: s.opts.Cause})
	}
	r.Causes = causesOf(traced)
}

// appendNewest leaves out what was appended last: names that change together come
// together.
func appendNewest(traced, more []origin) []origin {
	for _, c := range more {
		if n := len(traced); n == 0 || traced[n-1].cause.SpanID() != c.cause.SpanID() {
			traced = append(traced, c)
		}
	}
	return traced
}

func (f *flight) because(name string, w why) {
	if f.why == nil {
		f.why = map[string]why{}
	}
	f.why[name] = w
}

// causesOf gives each change once, oldest first.
func causesOf(traced []origin) []index.Cause {
	if len(traced) == 0 {
		return nil
	}
	slices.SortStableFunc(traced, func(a, b origin) int { return int(a.revision) - int(b.revision) })
	out := make([]index.Cause, 0, min(len(traced), maxCauses))
	for i := range traced {
		if i+1 < len(traced) && traced[i+1].cause.SpanID() == traced[i].cause.SpanID() {
			continue
		}
		out = append(out, traced[i].cause)
	}
	return out[max(0, len(out)-maxCauses):]
}

// names of what the response sends and removes.
func (r *Response) names() []string {
	out := make([]string, 0, len(r.Send)+len(r.Remove))
	for _, x := range r.Send {
		out = append(out, x.Name)
	}
	for _, p := range r.Remove {
		out = append(out, p.Key().Name)
	}
	return out
}

// again: what was rejected is pending for the same reasons as before.
func (t *subscription) again(f *flight) {
	for name, w := range f.why {
		later := t.why[name]
		delete(t.why, name)
		t.inherit(name, w)
		t.inherit(name, later)
	}
}

// asks: the client asks for names, as a rule because it was just sent something
// that refers to them. Then they are pending for the same reasons.
func (s *Stream) asks(t *subscription, names []string) {
	if len(names) == 0 {
		return
	}
	for _, url := range []string{Cluster, Listener, ScopedRoutes} {
		u := s.subs[url]
		if u == nil || u.last == nil || url == t.typeURL {
			continue
		}
		reasons := u.last.reasonsFor(t.typeURL)
		for _, name := range names {
			if w, ok := reasons[name]; ok {
				t.inherit(name, w)
			}
		}
	}
}

// reasonsFor gives, for each resource of a type that the response refers to, why
// what refers to it was sent. It is made once, however often the client asks.
func (f *flight) reasonsFor(url string) map[string]why {
	if made, ok := f.reasons[url]; ok {
		return made
	}
	of := map[string]why{}
	for _, r := range f.sent {
		w, ok := f.why[r.Name]
		for _, ref := range r.Refs {
			if ok && ref.Type == url {
				of[ref.Name] = w
			}
		}
	}
	if f.reasons == nil {
		f.reasons = map[string]map[string]why{}
	}
	f.reasons[url] = of
	return of
}
