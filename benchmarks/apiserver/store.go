package apiserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/kinds"
)

// store holds the encoded objects of one kind, and what became of them since
// the server began.
type store struct {
	*kinds.Watched
	json bool

	mu      sync.Mutex
	objects map[string]*entry
	sorted  []*entry // nil after a write
	events  []event
	moved   chan struct{} // closed at the next write
	gate    chan struct{} // lists wait until it is closed; nil is open
}

// entry is one object in one version. Immutable.
type entry struct {
	key     string // namespace/name
	version uint64
	body    []byte // without an envelope
}

// event is something that watchers are told.
type event struct {
	typ string
	*entry
}

func newStore(w *kinds.Watched) *store {
	return &store{
		Watched: w, objects: map[string]*entry{}, moved: make(chan struct{}),
		json: strings.Contains(w.GVK.Group, "projectcontour"),
	}
}

// encode gives an object as the API server would keep it.
func (s *store) encode(o fixture.Object, version uint64) (*entry, error) {
	e := &entry{key: o.GetNamespace() + "/" + o.GetName(), version: version}
	var err error
	if s.json {
		e.body, err = json.Marshal(o)
	} else if m, ok := o.(interface{ Marshal() ([]byte, error) }); ok {
		e.body, err = m.Marshal()
	} else {
		err = fmt.Errorf("%T has no protobuf form", o)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", s.Kind, e.key, err)
	}
	return e, nil
}

func (s *store) write(e *entry, deleted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	typ := "ADDED"
	if s.objects[e.key] != nil {
		typ = "MODIFIED"
	}
	s.objects[e.key], s.sorted = e, nil
	if deleted {
		delete(s.objects, e.key)
		typ = "DELETED"
	}
	s.events = append(s.events, event{typ, e})
	close(s.moved)
	s.moved = make(chan struct{})
}

// all gives the objects, ordered by key, and how many events they include.
func (s *store) all() ([]*entry, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorted == nil {
		s.sorted = make([]*entry, 0, len(s.objects))
		for _, e := range s.objects {
			s.sorted = append(s.sorted, e)
		}
		slices.SortFunc(s.sorted, func(a, b *entry) int { return strings.Compare(a.key, b.key) })
	}
	return s.sorted, len(s.events)
}

// since gives the number of the first event after a version.
func (s *store) since(version uint64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.events, version+1, func(e event, v uint64) int {
		switch {
		case e.version < v:
			return -1
		case e.version > v:
			return 1
		}
		return 0
	})
	return i
}

// from gives the events from a number on, and a channel that is closed when
// there are more.
func (s *store) from(n int) ([]event, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[n:len(s.events):len(s.events)], s.moved
}

func (s *store) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

func (s *store) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gate != nil {
		close(s.gate)
		s.gate = nil
	}
}

// passed waits while the store is held.
func (s *store) passed(done <-chan struct{}) bool {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate == nil {
		return true
	}
	select {
	case <-gate:
		return true
	case <-done:
		return false
	}
}
