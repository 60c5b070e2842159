package k8swatch

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/index"
)

// item is what one event brings: changes that belong into one transaction.
type item struct {
	changes []index.Change
	// event is ADDED, MODIFIED, DELETED or empty, for the trace.
	event string
	// eager items were seen before the end of a list; they may wait for more.
	eager bool
	// list is the span of the list that the item is a part of, if it is.
	list trace.SpanContext
	at   time.Time
}

// applier gives items to the sink in the order in which they come, several in
// one transaction when they come faster than they are applied. It is the only
// one that writes to the sink.
type applier struct {
	sink  Sink
	opts  Options
	queue chan item
	done  <-chan struct{}
}

func newApplier(ctx context.Context, sink Sink, opts Options) *applier {
	return &applier{sink: sink, opts: opts, queue: make(chan item, opts.Batch), done: ctx.Done()}
}

// put queues an item; it waits while the index is behind, which holds back the
// API server instead of filling memory.
func (a *applier) put(it item) {
	if it.at.IsZero() {
		it.at = a.opts.Now()
	}
	select {
	case a.queue <- it:
	case <-a.done:
	}
}

func (a *applier) run() {
	for {
		select {
		case it := <-a.queue:
			a.apply(a.gather(it))
		case <-a.done:
			return
		}
	}
}

// gather collects what is there. Only while all of it is eager does it wait for
// more.
func (a *applier) gather(first item) batch {
	var b batch
	b.add(first)
	linger := time.NewTimer(a.opts.Linger)
	defer linger.Stop()
	for len(b.changes) < a.opts.Batch {
		if !b.eager {
			select {
			case it := <-a.queue:
				b.add(it)
				continue
			default:
				return b
			}
		}
		select {
		case it := <-a.queue:
			b.add(it)
		case <-linger.C:
			return b
		case <-a.done:
			return b
		}
	}
	return b
}

func (a *applier) apply(b batch) {
	cause, commit := b.start(a.opts.Tracer)
	c := a.sink.Apply(cause, b.changes...)
	a.opts.Arrivals.Note(uint64(c.Revision), b.at)
	commit(c)
}
