package delta

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// pump decides what is pending, type by type in the order of leaving, and makes
// at most one response for each type that has none in flight.
func (s *Stream) pump() []*Response {
	s.refs, s.brokenSecrets = nil, nil
	var out []*Response
	for _, url := range s.urls() {
		if t := s.subs[url]; t.inFlight == nil {
			if r := s.respond(t); r != nil {
				out = append(out, r)
			}
		}
		s.subs[url].slim()
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

// respond makes the next response of a type, or nil. While a culprit is searched
// for, the parts of the rejected response go first.
func (s *Stream) respond(t *subscription) *Response {
	for len(t.batches) > 0 {
		batch := t.batches[0]
		t.batches = t.batches[1:]
		if d := s.decide(t, batch); !d.empty() {
			return s.emit(t, d)
		}
	}
	if t.gated {
		return nil
	}
	d := s.decide(t, t.next())
	if !d.empty() && t.opening() && len(t.withheld) > 0 {
		// What was found to be under way at an earlier look belongs to the whole as well.
		for _, w := range t.withheld {
			s.reconsider(w)
		}
		d = s.decide(t, t.next())
	}
	s.guardLosses(t, d)
	switch {
	case d.empty() && !s.owesEmpty(t):
		return nil
	case !d.empty() && t.coming > 0 && s.mustBeWhole(t):
		t.gated = true
		return nil
	}
	return s.emit(t, d)
}

// decided is what one look at the pending names of a type gives.
type decided struct {
	send   []*index.Resource
	remove []index.Proof
	urgent map[string]struct{} // those of send that are unchanged
}

// resend answers with what the client has: nothing about it has to wait.
func (d *decided) resend(r *index.Resource) {
	if d.urgent == nil {
		d.urgent = map[string]struct{}{}
	}
	d.urgent[r.Name] = struct{}{}
	d.send = append(d.send, r)
}

func (d *decided) empty() bool { return len(d.send) == 0 && len(d.remove) == 0 }

func (s *Stream) decide(t *subscription, names []string) *decided {
	d := &decided{}
	for _, name := range names {
		s.due = time.Time{}
		s.decideOne(t, name, d)
	}
	return d
}

// next gives the names to look at, sorted.
func (t *subscription) next() []string {
	names := make([]string, 0, len(t.pending))
	for name := range t.pending {
		names = append(names, name)
	}
	slices.Sort(names)
	t.swollen = t.swollen || len(names) > roomy
	return names
}

// roomy is how many names a subscription's maps may have held and still be kept.
const roomy = 256

// slim gives back the room that the names of a whole first response took: a map of
// Go never shrinks, and there are a thousand clients.
func (t *subscription) slim() {
	if !t.swollen || len(t.pending) > 0 || len(t.withheld) > roomy {
		return
	}
	t.swollen = false
	t.pending, t.withheld, t.why, t.told = packed(t.pending), packed(t.withheld), packed(t.why), packed(t.told)
	t.unknown, t.others, t.ahead = packed(t.unknown), packed(t.others), packed(t.ahead)
}

// packed gives the same map in the room that it needs. (maps.Clone copies the room.)
func packed[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	maps.Copy(out, m)
	return out
}

// decideOne applies the rule, then the order, to one name. What may not leave is
// withheld, with the reason.
func (s *Stream) decideOne(t *subscription, name string, d *decided) {
	urge := t.pending[name]
	row := s.snap.Resolve(t.key(name))
	held := t.held(name, row, s.snap)
	if held == nil && t.asked(name, row) {
		held = t.suspected(name, s.snap)
	}
	if held == nil && !t.owes(name, row) {
		s.settle(t, name)
		return
	}
	if held != nil && s.recall(t, row, d) {
		return
	}
	v := Decide(s.snap, t.key(name), held, s.excused)
	if older := t.owedOlder(name, urge); older != nil && (v.Action == Withhold || v.Action == Remove) {
		d.resend(older)
		return
	}
	switch v.Action {
	case Nothing:
		if urge == always || t.doubtful[name] != nil {
			d.resend(v.Resource)
			return
		}
		s.settle(t, name)
	case Send:
		s.decideSend(t, v.Resource, held, urge, d)
	case Remove:
		s.decideRemove(t, name, held, v.Proof, urge, d)
	case Withhold:
		s.withhold(t, name, action(v.Resource), delay{why: "not proven", missing: v.Missing}, urge)
	}
}

// owedOlder: endpoints are owed behind a cluster that was sent, and until they come
// Envoy acknowledges no cluster (15 s). Where the newest can't leave yet, or are gone,
// those that the client holds will do.
func (t *subscription) owedOlder(name string, urge urgency) *index.Resource {
	if t.typeURL != Endpoints || urge != always {
		return nil
	}
	return t.others[name].row
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
	wait := s.sendNotYet(t, r, held != nil)
	if wait.why != "" {
		wait.coming = wait.coming && s.mustBeWhole(t)
		s.withhold(t, r.Name, "send", wait, urge)
		return
	}
	s.release(t, r.Name)
	d.send = append(d.send, r)
}

// rejectedByClient comes before the words of the client.
const rejectedByClient = "rejected by the client: "

func (s *Stream) sendNotYet(t *subscription, r *index.Resource, held bool) delay {
	if t.barred(r) {
		return delay{why: rejectedByClient + t.quarantine[r.Name].message}
	}
	if held && (t.typeURL == Listener || t.typeURL == RouteConfiguration) && !s.acquainted() {
		return delay{why: unacquainted}
	}
	if t.typeURL == ScopedRoutes && t.opening() {
		// An Envoy that got its listeners elsewhere is ready with the hosts of this one
		// response.
		if missing := s.unexcused(s.snap.Type(ScopedRoutes).Feeds); len(missing) > 0 {
			return delay{why: "waits for all hosts", missing: missing}
		}
	}
	return s.notYet(r, held)
}

// mustBeWhole: the first response of a wildcard type ends a phase of Envoy's start,
// so what is under way is waited for, though not for ever.
func (s *Stream) mustBeWhole(t *subscription) bool {
	if !t.opening() {
		return false
	}
	if t.wholeBy.IsZero() {
		t.wholeBy = s.now.Add(orphanWait)
	}
	if !s.now.Before(t.wholeBy) {
		return false
	}
	s.wakeAt(t.wholeBy)
	return true
}

// opening: the next response is the first one to a client that holds nothing.
func (t *subscription) opening() bool { return t.fresh && !t.answered && t.wildcard }

func (s *Stream) decideRemove(t *subscription, name string, held *index.Token, p index.Proof, urge urgency, d *decided) {
	if wait := s.removeNotYet(t, name, held != nil); wait.why != "" {
		s.withhold(t, name, "remove", wait, urge)
		return
	}
	d.remove = append(d.remove, p)
}

func (s *Stream) removeNotYet(t *subscription, name string, held bool) delay {
	if q, ok := t.quarantine[name]; ok {
		return delay{why: rejectedByClient + q.message}
	}
	if !held {
		return delay{}
	}
	if !s.acquainted() {
		return delay{why: unacquainted}
	}
	return s.stillUsed(t, name)
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
	return len(s.unexcused(spec.Feeds)) == 0
}

// unexcused gives those of the kinds that a client which holds nothing has to wait for.
func (s *Stream) unexcused(kinds []index.Kind) []index.Lack {
	return slices.DeleteFunc(s.snap.Incomplete(kinds), func(l index.Lack) bool { return s.excused(l.Kind) })
}

func (s *Stream) emit(t *subscription, d *decided) *Response {
	r := &Response{
		Type: t.typeURL, Nonce: s.nextNonce(), Source: s.snap, Send: d.send, Remove: d.remove,
		Revised: s.snap.Revision(),
	}
	f := &flight{nonce: r.Nonce, sent: d.send, urgent: d.urgent, removed: make(map[string]struct{}, len(d.remove))}
	s.carry(t, r, f)
	for _, p := range d.remove {
		f.removed[p.Key().Name] = struct{}{}
		s.tellReleased(t, p.Key().Name, r.Nonce)
		s.settle(t, p.Key().Name)
	}
	for _, res := range d.send {
		s.tellReleased(t, res.Name, r.Nonce)
		s.settle(t, res.Name)
	}
	if !t.answered {
		t.firstSent = s.now
	}
	t.inFlight, t.answered, t.lastSent = f, true, s.now
	if t.last = nil; f.why != nil {
		t.last = f
	}
	t.status.Responses++
	t.status.Resources += uint64(len(d.send))
	t.status.Removed += uint64(len(d.remove))
	if s.refs != nil {
		for _, res := range d.send {
			s.refs.add(res)
		}
	}
	s.followUp(t, d.send)
	return r
}

// excused: a client that holds nothing waits no longer for a kind that has kept
// failing. As long as no kind at all was observed it waits: then nothing is known.
func (s *Stream) excused(k index.Kind) bool {
	row := s.snap.Kind(k)
	if row == nil || !s.starting() || s.opts.FreshEnvoyWait == 0 || (row.State != index.Failing && row.State != index.Forbidden) {
		return false
	}
	due := row.Since.Add(s.opts.FreshEnvoyWait)
	if s.now.Before(due) {
		s.wakeAt(due)
		return false
	}
	if !anyObserved(s.snap) {
		return false
	}
	if !slices.Contains(s.without, k) {
		s.without = append(s.without, k)
	}
	return true
}

// starting: the client came with nothing and is not yet, or only just, in service. It
// alone is excused from waiting: who serves already keeps serving what it has, also
// where something new is asked for that can't be decided.
func (s *Stream) starting() bool {
	c, l := s.subs[Cluster], s.subs[Listener]
	if c == nil || !c.fresh {
		return false
	}
	return l == nil || l.fresh && (!l.answered || s.now.Before(l.firstSent.Add(orphanWait)))
}
