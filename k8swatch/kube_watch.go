package k8swatch

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/holdfast-xds/holdfast/index"
)

// watcher keeps one kind listed and watched, for ever.
type watcher struct {
	kube      *Kube
	resource  *resource
	state     *kindState
	span      *listSpan
	reflector *cache.Reflector
	log       klog.Logger
	backoff   backoff
}

// stallTimeout: a streamed list that says nothing for so long is given up for a
// paged one. The API server marks the end of one within a fraction of a second.
const stallTimeout = 30 * time.Second

func (k *Kube) watcher(r *resource, state *kindState, put func(item), running *tasks) *watcher {
	s := &store{kind: r.Kind, state: state, put: put, span: state.span, rolledBack: k.rolledBack}
	l := &lister{resource: *r, state: state, store: s, put: put, batch: k.opts.Batch, stall: k.stall, running: running}
	// client-go says much at every try; what matters of it is in the kind's state.
	log := logr.FromSlogHandler(k.opts.Logger.Handler()).V(4)
	reflector := cache.NewReflectorWithOptions(l, r.New(), s, cache.ReflectorOptions{
		Name: "holdfast", TypeDescription: nameOf(r.Watched), Logger: &log,
		Backoff: &wait.Backoff{Duration: k.opts.RetryMin, Cap: k.opts.RetryMax, Factor: 1.5, Jitter: 0.2, Steps: 32},
	})
	reflector.WatchListPageSize = k.opts.PageSize
	return &watcher{
		kube: k, resource: r, state: state, span: state.span, reflector: reflector, log: log,
		backoff: backoff{min: k.opts.RetryMin, max: k.opts.RetryMax},
	}
}

func (w *watcher) run(ctx context.Context) {
	ctx = klog.NewContext(ctx, w.log)
	for ctx.Err() == nil {
		start := time.Now()
		err := w.reflector.ListAndWatchWithContext(ctx)
		if ctx.Err() != nil {
			return
		}
		w.span.because(err)
		w.span.fail(err)
		w.judge(ctx, err)
		w.pause(ctx, max(suggested(err), w.backoff.next(time.Since(start))))
	}
}

// pause waits before the next try. When another kind is served again, the wait
// is over, and tries come in quick succession once more.
func (w *watcher) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.kube.served.rung():
		w.backoff.now = 0
	case <-ctx.Done():
	}
}

// suggested is how long an API server that has too much to do asks us to wait.
func suggested(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return min(time.Duration(seconds)*time.Second, time.Minute)
}

// judge makes a state of the error that ended a list or watch. "Not found" is
// the only one that may mean absence, and only discovery can say so.
func (w *watcher) judge(ctx context.Context, err error) {
	switch {
	case err == nil || stale(err):
	case apierrors.IsNotFound(err) && !w.resource.Required:
		w.discover(ctx, err)
	default:
		w.state.failed(err)
	}
}

func (w *watcher) discover(ctx context.Context, notFound error) {
	served, err := w.kube.serves(ctx, w.resource.Watched)
	switch {
	case err != nil:
		w.state.failed(err)
	case served:
		w.state.failed(notFound)
	default:
		w.state.absent("the API server does not serve " + nameOf(w.resource.Watched))
	}
}

// backoff says how long to wait before the next try. It grows gently: an API
// server that was away for ten seconds is found within five.
type backoff struct {
	min, max time.Duration
	now      time.Duration
}

// calm is how long a try must have lasted to count as a success.
const calm = 30 * time.Second

func (b *backoff) next(lasted time.Duration) time.Duration {
	if b.now == 0 || lasted > calm {
		b.now = b.min
		return b.now
	}
	b.now = min(b.now+b.now/2, b.max)
	return b.now
}

// rolledBack is told that a list is older than what was seen before it: the
// store of the API server was put back to an earlier state.
func (k *Kube) rolledBack(kind index.Kind, seen, now index.ResourceVersion) []index.Change {
	k.opts.Logger.Error("the API server's past was rolled back (restored from a backup?): what was seen before is no longer believed",
		"kind", string(kind), "seen", seen.String(), "now", now.String())
	return []index.Change{index.SourceID{ID: k.rollback(now)}}
}
