package delta

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// introduction is how long a client gets to tell, type by type, what it holds
// before anything is taken from it: what it holds of one type (a Secret, say) may
// bear on what becomes of another.
const introduction = 300 * time.Millisecond

const unacquainted = "waits for the client to tell what it holds"

// acquainted: the client asked for its last type some time ago.
func (s *Stream) acquainted() bool {
	due := s.introduced.Add(introduction)
	if s.now.Before(due) {
		s.wakeAt(due)
		return false
	}
	return true
}

// stillUsed says why a resource that is proven absent is not removed yet.
func (s *Stream) stillUsed(t *subscription, name string) delay {
	k := t.key(name)
	switch t.typeURL {
	case Cluster:
		return s.clusterStillUsed(k)
	case Endpoints:
		return s.referredTo(k, Cluster)
	case RouteConfiguration:
		return s.referredTo(k, ScopedRoutes, Listener)
	case Secret:
		return s.secretStillUsed(k)
	default:
		return delay{}
	}
}

// secretStillUsed: a Secret that is broken has no resource, and a listener may
// still name it for the sake of those who hold an older version.
func (s *Stream) secretStillUsed(k index.ResourceKey) delay {
	for _, c := range append(s.snap.Candidates(k), k) {
		if user, ok := s.broken()[c]; ok {
			return delay{why: "in use by " + user.String(), on: []index.ResourceKey{user}}
		}
	}
	return s.referredTo(k, Listener, Cluster)
}

// broken gives the Secrets that listeners of the index name though it has none.
func (s *Stream) broken() map[index.ResourceKey]index.ResourceKey {
	if s.brokenSecrets == nil {
		s.brokenSecrets = map[index.ResourceKey]index.ResourceKey{}
		for r := range s.snap.Resources(Listener) {
			for _, ref := range r.Refs {
				if ref.Type == Secret && s.snap.Resource(ref) == nil {
					s.brokenSecrets[ref] = r.ResourceKey
				}
			}
		}
	}
	return s.brokenSecrets
}

func (s *Stream) clusterStillUsed(k index.ResourceKey) delay {
	if d := s.referredTo(k, RouteConfiguration, Listener); d.why != "" {
		delete(s.leaving, k.Name)
		return d
	}
	since, ok := s.leaving[k.Name]
	if !ok {
		since = s.now
		s.leaving[k.Name] = since
	}
	if due := since.Add(s.opts.RemovalGrace); s.now.Before(due) {
		s.wakeAt(due)
		return delay{why: "grace for requests under way"}
	}
	delete(s.leaving, k.Name)
	return delay{}
}

// referredTo says which resource of the given types, in a version that the client
// holds or may hold, still refers to k.
func (s *Stream) referredTo(k index.ResourceKey, types ...string) delay {
	u := s.users()
	for _, url := range types {
		if s.subs[url] == nil {
			if s.unasked(url) {
				return delay{why: "waits for the client to ask for " + short(url), on: []index.ResourceKey{{Type: url}}}
			}
			continue
		}
		if user, ok := u.unknown[url]; ok {
			return delay{why: "may be used by " + user.String(), on: []index.ResourceKey{user}}
		}
	}
	if user, ok := u.of[k]; ok && slices.Contains(types, user.Type) {
		return delay{why: "in use by " + user.String(), on: []index.ResourceKey{user}}
	}
	return delay{}
}

// references tell what the client's versions refer to, as far as they are not the
// index's current ones. No live row of the index refers to what is gone, so only
// other versions can.
type references struct {
	// of gives for a resource one that refers to it: the first by name.
	of map[index.ResourceKey]index.ResourceKey
	// unknown gives, by type, the first of those that the client brought along in a
	// version we don't know: it is taken to refer to anything.
	unknown map[string]index.ResourceKey
}

// users gives the references, made once for each step of the machine.
func (s *Stream) users() *references {
	if s.refs != nil {
		return s.refs
	}
	s.refs = &references{of: map[index.ResourceKey]index.ResourceKey{}, unknown: map[string]index.ResourceKey{}}
	for _, url := range []string{Cluster, Listener, ScopedRoutes, RouteConfiguration} {
		if t := s.subs[url]; t != nil {
			s.refs.collect(t, s.snap)
		}
	}
	return s.refs
}

func (u *references) collect(t *subscription, snap *index.Snapshot) {
	for name, h := range t.others {
		k := t.key(name)
		if now := snap.Resource(k); now != nil && now.Digest == h.token.Digest && !h.token.Formless {
			continue // the same body as that of the live row, so the same references
		}
		if h.row != nil {
			u.add(h.row)
		} else if first, ok := u.unknown[t.typeURL]; !ok || k.Name < first.Name {
			u.unknown[t.typeURL] = k
		}
	}
	for _, d := range t.doubtful {
		for _, r := range d.rows {
			u.add(r)
		}
	}
	if t.inFlight != nil {
		for _, r := range t.inFlight.sent {
			u.add(r)
		}
	}
}

func (u *references) add(r *index.Resource) {
	for _, ref := range r.Refs {
		if first, ok := u.of[ref]; !ok || strings.Compare(r.Name, first.Name) < 0 {
			u.of[ref] = r.ResourceKey
		}
	}
}

// unasked: the client has not yet told what it holds of a type, and may hold
// something: always so for listeners, else when it holds a listener.
func (s *Stream) unasked(url string) bool {
	due := s.started.Add(orphanWait)
	if !s.now.Before(due) {
		return false
	}
	if url != Listener {
		l := s.subs[Listener]
		if l != nil && l.current.count() == 0 && len(l.others) == 0 {
			return false
		}
	}
	s.wakeAt(due)
	return true
}

func short(url string) string { return strings.TrimSpace(index.ResourceKey{Type: url}.String()) }
