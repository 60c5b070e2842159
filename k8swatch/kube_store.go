package k8swatch

import (
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/holdfast-xds/holdfast/index"
)

// store is where a Reflector puts what it sees: straight into the index. Its
// Replace is the proof that a list was complete; what the Reflector says after
// that is in order.
type store struct {
	kind  index.Kind
	state *kindState
	put   func(item)
	span  *listSpan
	// rolledBack is told that the list is older than what was seen before; it
	// gives the changes that say so.
	rolledBack func(kind index.Kind, seen, now index.ResourceVersion) []index.Change
	// streaming: the list at hand is a WatchList, its watch goes on.
	streaming atomic.Bool

	// Owned by the Reflector's goroutine.
	highest index.ResourceVersion
}

var (
	_ cache.ReflectorStore         = (*store)(nil)
	_ cache.ReflectorBookmarkStore = (*store)(nil)
)

// Add implements cache.ReflectorStore.
func (s *store) Add(o any) error { return s.upsert(watch.Added, o) }

// Update implements cache.ReflectorStore.
func (s *store) Update(o any) error { return s.upsert(watch.Modified, o) }

func (s *store) upsert(event watch.EventType, o any) error {
	obj, err := s.object(o)
	if err != nil {
		s.state.failed(err)
		return err
	}
	s.highest = max(s.highest, obj.Version)
	s.state.hear()
	s.put(item{event: string(event), changes: []index.Change{index.Upsert{Object: obj, InOrder: true}}})
	return nil
}

// Delete implements cache.ReflectorStore. The resourceVersion of a DELETED
// event's object is that of the deletion.
func (s *store) Delete(o any) error {
	obj, err := s.object(o)
	if err != nil {
		s.state.failed(err)
		return err
	}
	s.highest = max(s.highest, obj.Version)
	s.state.hear()
	s.put(item{event: string(watch.Deleted), changes: []index.Change{index.Delete{Key: obj.ObjectKey, Version: obj.Version}}})
	return nil
}

// Replace implements cache.ReflectorStore: a list has ended.
func (s *store) Replace(list []any, resourceVersion string) error {
	version, err := index.ParseResourceVersion(resourceVersion)
	if err != nil {
		return fmt.Errorf("list of %s: resourceVersion %q is not a number", s.kind, resourceVersion)
	}
	objects := make([]*index.Object, 0, len(list))
	for _, o := range list {
		obj, err := s.object(o)
		if err != nil {
			return err
		}
		objects = append(objects, obj)
	}
	var changes []index.Change
	if version < s.highest {
		changes = s.rolledBack(s.kind, s.highest, version)
	}
	s.highest = version
	changes = append(changes, index.Replace{Kind: s.kind, Objects: objects, Version: version})
	s.state.replaced(s.streaming.Load(), item{list: s.span.end(len(objects)), changes: changes})
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *store) Bookmark(resourceVersion string) error {
	version, err := index.ParseResourceVersion(resourceVersion)
	if err != nil {
		return fmt.Errorf("bookmark of %s: resourceVersion %q is not a number", s.kind, resourceVersion)
	}
	s.highest = max(s.highest, version)
	s.state.hear()
	s.put(item{changes: []index.Change{index.Bookmark{Kind: s.kind, Version: version}}})
	return nil
}

// Resync implements cache.ReflectorStore; the Reflector is told never to.
func (s *store) Resync() error { return nil }

func (s *store) object(o any) (*index.Object, error) {
	typed, ok := o.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%s: unexpected object %T", s.kind, o)
	}
	return objectOf(s.kind, typed)
}
