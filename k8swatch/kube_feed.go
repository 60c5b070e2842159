package k8swatch

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// feed stands between a watch and the Reflector that reads it.
type feed struct {
	*lister
	from watch.Interface
	out  chan watch.Event
	stop chan struct{}
	once sync.Once
	// Owned by pump. initial: the events are a list's, up to the bookmark that
	// ends it.
	initial bool
	silence *time.Timer
}

// feed begins one, for which running.begin was asked.
func (l *lister) feed(from watch.Interface, initial bool, first *watch.Event) watch.Interface {
	f := &feed{lister: l, from: from, out: make(chan watch.Event), stop: make(chan struct{}), initial: initial}
	go f.pump(first)
	return f
}

// ResultChan implements watch.Interface.
func (f *feed) ResultChan() <-chan watch.Event { return f.out }

// Stop implements watch.Interface.
func (f *feed) Stop() { f.once.Do(func() { close(f.stop) }) }

func (f *feed) pump(first *watch.Event) {
	defer f.running.Done()
	defer close(f.out)
	defer f.from.Stop()
	f.silence = time.NewTimer(f.stall)
	defer f.silence.Stop()
	if first != nil && !f.pass(*first) {
		return
	}
	for {
		e, ok := f.next()
		if !ok || !f.pass(e) {
			return
		}
	}
}

// next gives the next event; an error when a streamed list has stalled.
func (f *feed) next() (watch.Event, bool) {
	for {
		select {
		case e, ok := <-f.from.ResultChan():
			f.silence.Reset(f.stall)
			return e, ok
		case <-f.silence.C:
			if f.initial {
				// It would go on like this until the watch times out, which takes
				// minutes, and then begin again.
				f.noStream.Store(true)
				return watch.Event{Type: watch.Error, Object: errorStatus(errNoStream)}, true
			}
		case <-f.stop:
			return watch.Event{}, false
		}
	}
}

// pass hands an event on, and reports whether there is still somebody to take it.
func (f *feed) pass(e watch.Event) bool {
	f.look(e)
	select {
	case f.out <- e:
		return true
	case <-f.stop:
		return false
	}
}

// look trims an event's object and shows it to the index early, if it is part
// of a list.
func (f *feed) look(e watch.Event) {
	switch e.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		o, ok := e.Object.(metav1.Object)
		if !ok {
			return
		}
		trim(o)
		if f.initial && e.Type != watch.Deleted {
			f.state.progress()
			f.state.span.came()
			f.seen([]runtime.Object{e.Object})
		}
	case watch.Bookmark:
		o, ok := e.Object.(metav1.Object)
		if ok && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			f.state.span.came()
			f.initial = false
		}
	case watch.Error:
		err := apierrors.FromObject(e.Object)
		f.state.span.because(err)
		if !f.initial && !stale(err) {
			f.state.failed(fmt.Errorf("watch of %s: %w", nameOf(f.Watched), err))
		}
	}
}

func errorStatus(err error) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: err.Error()}
}
