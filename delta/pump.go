package delta

import (
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// pump decides what is pending, type by type in the order of leaving, and makes
// at most one response for each type that has none in flight.
func (s *Stream) pump() []*Response {
	var out []*Response
	for _, url := range s.urls() {
		if t := s.subs[url]; t.inFlight == nil {
			if r := s.respond(t); r != nil {
				out = append(out, r)
			}
		}
	}
	return out
}

// urls gives the subscribed types in the order of leaving; types that we do not
// know come last, so that their names are answered as well.
func (s *Stream) urls() []string {
	out := make([]string, 0, len(s.subs))
	for _, url := range order {
		if s.subs[url] != nil {
			out = append(out, url)
		}
	}
	var rest []string
	for url := range s.subs {
		if !slices.Contains(order, url) {
			rest = append(rest, url)
		}
	}
	slices.Sort(rest)
	return append(out, rest...)
}

// respond makes the next response of a type, or nil.
func (s *Stream) respond(t *subscription) *Response {
	d := s.decide(t)
	if len(d.send) == 0 && len(d.remove) == 0 {
		if !s.owesEmpty(t) {
			return nil
		}
	} else if d.incomplete {
		return nil
	}
	return s.emit(t, d)
}

// decided is what one look at the pending names of a type gives.
type decided struct {
	names  []string // of send and remove
	send   []*index.Resource
	remove []index.Proof
	// incomplete: a first response that would be a part only, and the rest is
	// under way.
	incomplete bool
}

func (s *Stream) decide(t *subscription) decided {
	var d decided
	for _, name := range t.next() {
		s.decideOne(t, name, &d)
	}
	if len(t.batches) > 0 {
		t.batches = t.batches[1:]
		if len(d.names) == 0 && len(t.batches) > 0 {
			return s.decide(t)
		}
	}
	return d
}

// next gives the names to look at, sorted: those of the first batch while a
// culprit is searched for, else all that are pending.
func (t *subscription) next() []string {
	if len(t.batches) > 0 {
		for _, name := range t.batches[0] {
			t.want(name, always)
		}
		return t.batches[0]
	}
	names := make([]string, 0, len(t.pending))
	for name := range t.pending {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// decideOne applies the rule, then the order, to one name. What may not leave is
// withheld, with the reason.
func (s *Stream) decideOne(t *subscription, name string, d *decided) {
	urge := t.pending[name]
	row := s.snap.Resource(t.key(name))
	held := t.held(name, row, s.snap)
	if held == nil && !t.owes(name, row) {
		t.settle(name)
		return
	}
	v := Decide(s.snap, t.key(name), held, s.excused)
	if v.Action == Nothing && urge == always {
		v.Action = Send
	}
	switch v.Action {
	case Nothing:
		t.settle(name)
	case Send:
		s.decideSend(t, v.Resource, held, urge, d)
	case Remove:
		s.decideRemove(t, name, held, v.Proof, urge, d)
	case Withhold:
		s.withhold(t, name, action(v.Resource), "not proven", v.Missing, urge)
	}
}

// owes: a client that holds nothing of the name is owed an answer. A wildcard asks
// for what there is, not for what there is not.
func (t *subscription) owes(name string, row *index.Resource) bool {
	if row != nil {
		return t.asked(name, row)
	}
	_, byName := t.unknown[name]
	return byName
}

func action(r *index.Resource) string {
	if r == nil {
		return "remove"
	}
	return "send"
}

func (s *Stream) decideSend(t *subscription, r *index.Resource, held *index.Token, urge urgency, d *decided) {
	if t.barred(r) {
		s.withhold(t, r.Name, "send", "rejected by the client: "+t.quarantine[r.Name].message, nil, urge)
		return
	}
	if held != nil && (t.typeURL == Listener || t.typeURL == RouteConfiguration) && !s.acquainted() {
		s.withhold(t, r.Name, "send", unacquainted, nil, urge)
		return
	}
	if why, coming := s.notYet(r, held != nil); why != "" {
		s.withhold(t, r.Name, "send", why, nil, urge)
		d.incomplete = d.incomplete || (coming && t.fresh && !t.answered && t.wildcard)
		return
	}
	d.names = append(d.names, r.Name)
	d.send = append(d.send, r)
}

func (s *Stream) decideRemove(t *subscription, name string, held *index.Token, p index.Proof, urge urgency, d *decided) {
	if held != nil && !s.acquainted() {
		s.withhold(t, name, "remove", unacquainted, nil, urge)
		return
	}
	if held != nil {
		if q, ok := t.quarantine[name]; ok {
			s.withhold(t, name, "remove", "rejected by the client: "+q.message, nil, urge)
			return
		}
		if why := s.stillUsed(t, name); why != "" {
			s.withhold(t, name, "remove", why, nil, urge)
			return
		}
	}
	d.names = append(d.names, name)
	d.remove = append(d.remove, p)
}

// owesEmpty: a wildcard request must be answered even when there is nothing,
// once that is proven; Envoy's start waits for it.
func (s *Stream) owesEmpty(t *subscription) bool {
	if !t.wildcard || t.answered || !t.fresh || len(t.withheld) > 0 {
		return false
	}
	spec := s.snap.Type(t.typeURL)
	if spec == nil {
		return true
	}
	for range s.snap.Resources(t.typeURL) {
		return false
	}
	for _, l := range s.snap.Incomplete(spec.Feeds) {
		if !s.excused(l.Kind) {
			return false
		}
	}
	return true
}

func (s *Stream) emit(t *subscription, d decided) *Response {
	r := &Response{
		Type: t.typeURL, Nonce: s.nextNonce(), Source: s.snap, Send: d.send, Remove: d.remove,
		Causes: t.causes, Revised: s.snap.Revision(),
	}
	f := &flight{nonce: r.Nonce, sent: d.send, at: s.now}
	for _, p := range d.remove {
		f.removed = append(f.removed, p.Key().Name)
	}
	for _, name := range d.names {
		t.settle(name)
	}
	t.inFlight, t.answered, t.causes = f, true, nil
	t.status.Responses++
	t.status.Resources += uint64(len(d.send))
	t.status.Removed += uint64(len(d.remove))
	s.followUp(t, d.send)
	return r
}

// settle: the name is decided and nothing is owed.
func (t *subscription) settle(name string) {
	delete(t.pending, name)
	delete(t.withheld, name)
}

func (s *Stream) withhold(t *subscription, name, action, why string, missing []index.Lack, urge urgency) {
	delete(t.pending, name)
	w := t.withheld[name]
	if w == nil {
		w = &Withheld{Resource: t.key(name), Since: s.now}
		t.withheld[name] = w
	}
	w.Action, w.Reason, w.Missing, w.urgency = action, why, missing, urge
}

// excused: a client that holds nothing waits no longer for a kind that has kept
// failing. As long as no kind at all was observed it waits: then nothing is known.
func (s *Stream) excused(k index.Kind) bool {
	row := s.snap.Kind(k)
	if row == nil || s.opts.FreshEnvoyWait == 0 || (row.State != index.Failing && row.State != index.Forbidden) {
		return false
	}
	due := row.Since.Add(s.opts.FreshEnvoyWait)
	if s.now.Before(due) {
		s.wakeAt(due)
		return false
	}
	return slices.ContainsFunc(s.snap.Kinds(), func(r *index.KindRow) bool { return r.Frontier.Observed })
}

func (s *Stream) wakeAt(t time.Time) {
	if s.wake.IsZero() || t.Before(s.wake) {
		s.wake = t
	}
}
