package delta

import (
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// What is withheld is looked at again when what it waits for moves, and at no other
// time: a client that is frozen with thousands of resources waiting costs nothing
// at each change of the index. Each Withheld waits for some of
//
//	resources   wake(key): it changed, was acknowledged, rejected, forgotten, withheld
//	types       wake({type, ""}): the client asked for its first
//	kinds       released: a frontier or state moved
//	time        elapsed: Tick

// delay is why something has to wait, and for what. The zero value is no delay.
type delay struct {
	why     string
	on      []index.ResourceKey // a key without a name is a type to be asked for
	missing []index.Lack
	// coming: what it waits for is under way.
	coming bool
}

func (s *Stream) withhold(t *subscription, name, action string, d delay, urge urgency) {
	delete(t.pending, name)
	k := t.key(name)
	w := t.withheld[name]
	isNew := w == nil
	if isNew {
		w = &Withheld{Resource: k, Since: s.now}
		t.withheld[name] = w
	}
	anew := isNew || w.Reason != d.why
	s.unregister(w)
	w.Action, w.Reason, w.Missing, w.urgency = action, d.why, d.missing, urge
	w.on, w.due, w.coming = d.on, s.due, d.coming
	s.register(w)
	s.tellWithheld(t, w, anew)
	if isNew {
		s.wake(k) // it is not under way, for those who thought so
	}
}

func (s *Stream) register(w *Withheld) {
	if w.coming {
		s.subs[w.Resource.Type].coming++
	}
	for _, on := range w.on {
		if s.waiting[on] == nil {
			s.waiting[on] = map[index.ResourceKey]struct{}{}
		}
		s.waiting[on][w.Resource] = struct{}{}
	}
	for _, l := range w.Missing {
		s.await(l)
	}
	if !w.due.IsZero() {
		s.timed[w.Resource] = struct{}{}
		s.wakeAt(w.due)
	}
}

func (s *Stream) unregister(w *Withheld) {
	if t := s.subs[w.Resource.Type]; w.coming {
		t.coming--
		t.gated = false
	}
	for _, on := range w.on {
		delete(s.waiting[on], w.Resource)
		if len(s.waiting[on]) == 0 {
			delete(s.waiting, on)
		}
	}
	delete(s.timed, w.Resource)
	delete(s.subs[w.Resource.Type].guarded, w.Resource.Name)
}

// settle: the name is decided and nothing is owed.
func (s *Stream) settle(t *subscription, name string) {
	delete(t.pending, name)
	delete(t.why, name)
	delete(t.told, name)
	s.release(t, name)
}

// release: nothing holds the name back any more.
func (s *Stream) release(t *subscription, name string) {
	if w := t.withheld[name]; w != nil {
		s.unregister(w)
		delete(t.withheld, name)
	}
}

// wake looks again at what waits for a resource.
func (s *Stream) wake(k index.ResourceKey) {
	for blocked := range s.waiting[k] {
		s.reconsider(s.subs[blocked.Type].withheld[blocked.Name])
	}
}

func (s *Stream) reconsider(w *Withheld) {
	s.subs[w.Resource.Type].want(w.Resource.Name, w.urgency)
}

// wakeAt asks for a Tick, on behalf of what is being decided.
func (s *Stream) wakeAt(t time.Time) {
	if s.deadline.IsZero() || t.Before(s.deadline) {
		s.deadline = t
	}
	if s.due.IsZero() || t.Before(s.due) {
		s.due = t
	}
}

// elapsed looks again at what waited for the time that it is now.
func (s *Stream) elapsed() {
	s.deadline = time.Time{}
	for k := range s.timed {
		if w := s.subs[k.Type].withheld[k.Name]; w.due.After(s.now) {
			s.wakeAt(w.due)
		} else {
			s.reconsider(w)
		}
	}
}

// await keeps, for each kind that something lacks, the lowest version that would
// do: as long as no kind gets there, nothing need be looked at.
func (s *Stream) await(l index.Lack) {
	if v, ok := s.awaited[l.Kind]; !ok || l.Held < v {
		s.awaited[l.Kind] = l.Held
	}
}

// released looks again at what was withheld for kinds that have moved.
func (s *Stream) released(prev *index.Snapshot) {
	begun := anyObserved(s.snap) && !anyObserved(prev)
	if !begun && !s.kindsMoved(prev) {
		return
	}
	clear(s.awaited)
	for _, t := range s.subs {
		for _, w := range t.withheld {
			if begun || slices.ContainsFunc(w.Missing, func(l index.Lack) bool { return s.moved(prev, l.Kind, l.Held) }) {
				s.reconsider(w)
				continue
			}
			for _, l := range w.Missing {
				s.await(l)
			}
		}
	}
}

func (s *Stream) kindsMoved(prev *index.Snapshot) bool {
	for k, v := range s.awaited {
		if s.moved(prev, k, v) {
			return true
		}
	}
	return false
}

// moved: the kind may no longer be what keeps something withheld that needs its
// frontier at v. Its state counts too: a kind that fails may be excused in time.
func (s *Stream) moved(prev *index.Snapshot, k index.Kind, v index.ResourceVersion) bool {
	now, old := s.snap.Kind(k), prev.Kind(k)
	return now != nil && (now.Frontier.Reaches(v) || now.State != old.State || now.Complete() != old.Complete())
}

func anyObserved(s *index.Snapshot) bool {
	return slices.ContainsFunc(s.Kinds(), func(k *index.KindRow) bool { return k.Frontier.Observed })
}
