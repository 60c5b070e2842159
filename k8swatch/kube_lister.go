package k8swatch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/holdfast-xds/holdfast/index"
)

// pageTimeout bounds one page of a list: the API server gives up after a minute.
const pageTimeout = 90 * time.Second

// lister is the Reflector's ListerWatcher. It lets no list be read from the
// past, trims what comes, and shows the index what is seen before a list ends.
type lister struct {
	resource
	state *kindState
	store *store
	put   func(item)
	batch int
	// stall is how long a stream of initial events may be silent.
	stall time.Duration
	// running are the requests and feeds.
	running *tasks

	// noStream: this API server does not finish a WatchList.
	noStream atomic.Bool
}

var _ cache.ListerWatcherWithContext = (*lister)(nil)

// List implements cache.ListerWatcher.
func (l *lister) List(o metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), o)
}

// Watch implements cache.ListerWatcher.
func (l *lister) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), o)
}

// consistent turns a list from the API server's cache, which may be of any age,
// into one that holds all that was written before it was asked for. Pages after
// the first are of the same moment as the first.
func consistent(o metav1.ListOptions) metav1.ListOptions {
	if o.Continue == "" {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
	return o
}

// ListWithContext implements cache.ListerWatcherWithContext: one page.
func (l *lister) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	if !l.running.begin() {
		return nil, context.Canceled
	}
	defer l.running.Done()
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	l.store.streaming.Store(false)
	l.store.span.page(o.Continue == "")
	list, err := l.list(ctx, consistent(o))
	if err != nil {
		return nil, err
	}
	l.state.progress()
	l.store.span.came()
	page, err := l.page(list)
	if err != nil {
		return nil, err
	}
	// The last page comes to the index with the Replace that follows at once.
	if page.Continue != "" {
		l.seen(page.Items)
	}
	return page, nil
}

// page copies the items of a list, trimmed, each on its own: an object that
// stays must not keep its whole page in memory.
func (l *lister) page(list runtime.Object) (*internalversion.List, error) {
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("list of %s: %w", l.Kind, err)
	}
	page := &internalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue(), RemainingItemCount: m.GetRemainingItemCount(),
	}}
	page.Items = make([]runtime.Object, 0, meta.LenList(list))
	err = meta.EachListItemWithAlloc(list, func(o runtime.Object) error {
		typed, ok := o.(metav1.Object)
		if !ok {
			return fmt.Errorf("list of %s: unexpected item %T", l.Kind, o)
		}
		trim(typed)
		page.Items = append(page.Items, o)
		return nil
	})
	return page, err
}

// seen shows the index objects of a list that has not ended.
func (l *lister) seen(objects []runtime.Object) {
	it := item{eager: true, event: string(watch.Added), list: l.store.span.context()}
	for _, o := range objects {
		obj, err := l.store.object(o)
		if err != nil {
			continue // the Replace will say so
		}
		it.changes = append(it.changes, index.Upsert{Object: obj})
		if len(it.changes) == l.batch {
			l.put(it)
			it.changes = nil
		}
	}
	if len(it.changes) > 0 {
		l.put(it)
	}
}

var (
	errNoStream = errors.New("the API server did not finish a streamed list")
	errClosed   = errors.New("the connection was closed")
)

// WatchWithContext implements cache.ListerWatcherWithContext.
func (l *lister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if initial && l.noStream.Load() {
		return nil, errNoStream
	}
	w, err := l.get(o).Watch(ctx)
	if err != nil {
		return nil, l.notOpened(err, initial)
	}
	// client-go calls a watch whose connection was closed an empty one.
	first, err := peek(w)
	if err != nil {
		return nil, l.notOpened(err, initial)
	}
	if initial {
		l.store.span.page(true)
	} else {
		l.state.watching()
	}
	l.store.streaming.Store(initial)
	if !l.running.begin() {
		w.Stop()
		return nil, context.Canceled
	}
	return l.feed(w, initial, first), nil
}

// peek gives the first event if there is one already. The error is that the
// watch has ended before it began.
func peek(w watch.Interface) (*watch.Event, error) {
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			w.Stop()
			return nil, errClosed
		}
		return &e, nil
	default:
		return nil, nil
	}
}

// notOpened notes why a watch could not be opened. A WatchList that is refused
// is nothing to note: a list follows, and its outcome counts. Its error must not
// look like "connection refused" or 429 either, for then the Reflector would
// wait and try again with no regard to its context.
func (l *lister) notOpened(err error, initial bool) error {
	if initial && !stale(err) {
		return fmt.Errorf("streamed list of %s: %s", nameOf(l.Watched), err.Error())
	}
	err = fmt.Errorf("watch of %s: %w", nameOf(l.Watched), err)
	l.store.span.because(err)
	if !initial && !stale(err) && !apierrors.IsNotFound(err) {
		l.state.failed(err)
	}
	return err
}

// stale: the resourceVersion asked for is too old, or from the future of an API
// server that lags. The Reflector lists anew; nothing is wrong.
func stale(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || tooLarge(err)
}

func tooLarge(err error) bool {
	return apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
