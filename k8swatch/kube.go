package k8swatch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// Kube is the source that watches an API server.
type Kube struct {
	// Set by NewKube.
	sink    Sink
	opts    Options
	clients *clients
	core    *rest.RESTClient // discovery, namespaces, health: JSON
	kinds   []*resource
	stall   time.Duration
	meters  *meters

	// served rings when a kind that failed is served again.
	served bell

	// id guards the source id; it changes when a rollback is found.
	id struct {
		sync.Mutex
		base, now string
	}
}

var _ Source = (*Kube)(nil)

// NewKube makes a source for the API server that config names (see LoadConfig).
// Nothing is asked of it before Run.
func NewKube(config *rest.Config, sink Sink, opts Options) (*Kube, error) {
	opts = opts.withDefaults()
	c, err := newClients(config)
	if err != nil {
		return nil, err
	}
	m, err := newMeters(opts.Meter)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server's kinds: %w", err)
	}
	k := &Kube{sink: sink, opts: opts, clients: c, stall: stallTimeout, meters: m}
	if k.core, err = c.of(coreVersion, typeJSON); err != nil {
		return nil, err
	}
	for i := range opts.Kinds {
		w := &opts.Kinds[i]
		client, err := c.of(w.GVK.GroupVersion(), contentTypeOf(w))
		if err != nil {
			return nil, err
		}
		k.kinds = append(k.kinds, &resource{client: client, Watched: w})
	}
	return k, nil
}

// Run implements Source.
func (k *Kube) Run(ctx context.Context) error {
	running := &tasks{}
	defer running.end()
	a := newApplier(ctx, k.sink, k.opts)
	running.Go(a.run)
	start := startUp(k.opts.Tracer, k.names())
	defer start.end()
	states := k.states(a.put, start)
	if err := k.meters.ages(states, k.opts.Now); err != nil {
		return fmt.Errorf("metrics of the API server's kinds: %w", err)
	}
	if !k.identify(ctx, a.put, states) {
		return nil
	}
	for i, r := range k.kinds {
		w := k.watcher(r, states[i], a.put, running)
		running.Go(func() { w.run(ctx) })
	}
	<-ctx.Done()
	return nil
}

func (k *Kube) states(put func(item), start *startSpan) []*kindState {
	out := make([]*kindState, len(k.kinds))
	for i, r := range k.kinds {
		span := &listSpan{kind: r.Kind, tracer: k.opts.Tracer, start: start, meters: k.meters}
		out[i] = &kindState{kind: r.Kind, log: k.opts.Logger, now: k.opts.Now, span: span, emit: put, state: index.Unknown, recovered: k.served.ring}
	}
	return out
}

func (k *Kube) names() []index.Kind {
	out := make([]index.Kind, 0, len(k.kinds))
	for _, r := range k.kinds {
		out = append(out, r.Kind)
	}
	return out
}

func (k *Kube) find(kind index.Kind) (*resource, error) {
	for _, r := range k.kinds {
		if r.Kind == kind {
			return r, nil
		}
	}
	return nil, fmt.Errorf("kind %s is not watched", kind)
}

// sleep waits, and reports whether ctx still runs.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// nameOf gives what a person calls the kind's resource: "httpproxies.projectcontour.io".
func nameOf(w *kinds.Watched) string { return w.GVR().GroupResource().String() }
