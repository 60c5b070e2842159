package delta

import (
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// The removal guard. A proof says that something is gone, not that it was meant to
// go: a CRD deleted by accident takes every HTTPProxy with it, and each removal is
// proven. When a client would lose more than a share of what it holds of a type
// within a minute, that is withheld, loudly, until the objects come back, a person
// releases it, or the hold has passed. As long as it withholds anything it withholds
// every loss, of any type: what goes by ones and twos belongs to the same mistake.
//
// What counts as a loss: a removed cluster or scope; a RouteConfiguration that is
// left without any cluster; the filter chains of a listener, each with what it
// refers to. Endpoints that go are none: keeping them would send requests to
// addresses where nobody is.

// Guard is the setting of the removal guard.
type Guard struct {
	// Share of a type that may be lost within a minute, 0 to 1; 0 turns the guard off.
	Share float64
	// Hold is how long the guard withholds.
	Hold time.Duration
}

const (
	// guardFrom is the number of resources of a type from which on the guard counts.
	guardFrom = 100
	// guardWindow is the time within which losses add up, and for which the guard
	// stays open once the hold has passed or a person has released it.
	guardWindow = time.Minute
)

// guarding is the guard's state of one stream.
type guarding struct {
	since time.Time // when it began to withhold; zero while it does not
	open  time.Time // until when it lets everything pass
}

// loss is what a client lost of a type at one time.
type loss struct {
	at time.Time
	n  int
}

// Release lets go what the guard withholds, and what follows from it.
func (s *Stream) Release(now time.Time) []*Response {
	s.now, s.freed = now, index.Cause{}
	s.guard.open = now.Add(guardWindow)
	for _, t := range s.subs {
		for name := range t.guarded {
			if w := t.withheld[name]; w != nil {
				s.reconsider(w)
			}
		}
	}
	return s.pump()
}

// Guarded gives how many resources the guard withholds.
func (s *Stream) Guarded() int {
	n := 0
	for _, t := range s.subs {
		n += len(t.guarded)
	}
	return n
}

// guardLosses takes out of d what the guard withholds.
func (s *Stream) guardLosses(t *subscription, d *decided) {
	if s.opts.Guard.Share <= 0 || !guards(t.typeURL) || d.empty() {
		return
	}
	losses := s.losses(t, d)
	if len(losses) == 0 {
		return
	}
	if s.Guarded() == 0 {
		s.guard.since = time.Time{}
	}
	total, recent := s.atStake(t), t.lostRecently(s.now)
	n := recent + sum(losses)
	for name, weight := range t.guarded {
		if _, again := losses[name]; !again {
			n += weight
		}
	}
	total += recent
	few := total < guardFrom || float64(n) <= s.opts.Guard.Share*float64(total)
	if few && s.Guarded() == 0 || s.guardOpen() {
		t.lost = append(t.lost, loss{s.now, sum(losses)})
		return
	}
	s.withholdLosses(t, d, losses, fmt.Sprintf("%s: would take %d of %d %ss from this client at once",
		guardedWords, n, total, short(t.typeURL)))
}

// guardedWords begin the reason of what the guard withholds.
const guardedWords = "held by the removal guard"

func guards(url string) bool {
	return url == Cluster || url == ScopedRoutes || url == RouteConfiguration || url == Listener
}

// guardOpen: the hold has passed, or a person has let it all go.
func (s *Stream) guardOpen() bool {
	if s.now.Before(s.guard.open) {
		return true
	}
	if !s.guard.since.IsZero() && !s.now.Before(s.guard.since.Add(s.opts.Guard.Hold)) {
		s.guard.open = s.now.Add(guardWindow)
		return true
	}
	return false
}

func (s *Stream) withholdLosses(t *subscription, d *decided, losses map[string]int, why string) {
	if s.guard.since.IsZero() {
		s.guard.since = s.now
	}
	wait := delay{why: why}
	back := func(name, action string) {
		urge := t.pending[name]
		s.due = time.Time{}
		s.wakeAt(s.guard.since.Add(s.opts.Guard.Hold))
		s.withhold(t, name, action, wait, urge)
		if t.guarded == nil {
			t.guarded = map[string]int{}
		}
		t.guarded[name] = losses[name]
	}
	d.remove = slices.DeleteFunc(d.remove, func(p index.Proof) bool {
		_, lost := losses[p.Key().Name]
		if lost {
			back(p.Key().Name, "remove")
		}
		return lost
	})
	d.send = slices.DeleteFunc(d.send, func(r *index.Resource) bool {
		_, lost := losses[r.Name]
		if lost {
			back(r.Name, "send")
		}
		return lost
	})
}

// losses gives the names of d by which the client would lose something, each with
// how much.
func (s *Stream) losses(t *subscription, d *decided) map[string]int {
	out := map[string]int{}
	for _, p := range d.remove {
		if h, held := t.others[p.Key().Name]; held {
			out[p.Key().Name] = t.weight(&h)
		}
	}
	for _, r := range d.send {
		h, held := t.others[r.Name]
		switch {
		case !held:
		case t.typeURL == RouteConfiguration && h.row != nil && len(h.row.Refs) > 0 && len(r.Refs) == 0:
			out[r.Name] = 1
		case t.typeURL == Listener && t.weight(&h) > len(r.Refs):
			out[r.Name] = t.weight(&h) - len(r.Refs)
		}
	}
	return out
}

// weight is how much of its type a held version is.
func (t *subscription) weight(h *holding) int {
	switch {
	case t.typeURL != Listener:
		return 1
	case h.row != nil:
		return len(h.row.Refs)
	default:
		return h.token.Weight
	}
}

// atStake is how much of a type the client holds.
func (s *Stream) atStake(t *subscription) int {
	if t.typeURL != Listener {
		return t.current.count() + len(t.others)
	}
	n := 0
	for r := range s.snap.Resources(Listener) {
		if t.current.has(r.Ordinal) {
			n += len(r.Refs)
		}
	}
	for _, h := range t.others {
		n += t.weight(&h)
	}
	return n
}

func (t *subscription) lostRecently(now time.Time) int {
	t.lost = slices.DeleteFunc(t.lost, func(l loss) bool { return now.Sub(l.at) > guardWindow })
	n := 0
	for _, l := range t.lost {
		n += l.n
	}
	return n
}

func sum(losses map[string]int) int {
	n := 0
	for _, x := range losses {
		n += x
	}
	return n
}
