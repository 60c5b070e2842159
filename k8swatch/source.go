package k8swatch

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/tracing"
)

// Sink takes what a source sees; *index.Index is one.
type Sink interface {
	Apply(cause index.Cause, changes ...index.Change) index.Commit
}

// Source fills a Sink until its context ends. *Kube and *Dir are sources.
type Source interface {
	// Run gives nil when the context ends. It ends for no other reason.
	Run(ctx context.Context) error
}

// Options are common to both sources. The zero value is fit for use.
type Options struct {
	Logger *slog.Logger
	// Tracer makes a span for each list and each batch of watch events; nil makes none.
	Tracer trace.Tracer
	// Meter makes the source's metrics; nil makes none.
	Meter metric.Meter
	// Arrivals are told when the changes of each revision came; nil is not.
	Arrivals *tracing.Arrivals
	// Kinds to watch; nil for kinds.All.
	Kinds []kinds.Watched
	// Now is the clock for what is shown to people.
	Now func() time.Time

	// Batch is the most changes in one transaction (200), Linger how long what is
	// seen before the end of a list waits for more (20 ms). Watch events never
	// wait: only those that have queued up meanwhile share a transaction.
	Batch  int
	Linger time.Duration

	// Kube: objects in a page of a list (500), and the first and longest time
	// between two tries of what fails (250 ms, 10 s).
	PageSize           int64
	RetryMin, RetryMax time.Duration

	// Dir: how long the folder must be quiet before changed files are read
	// (20 ms), how long a file that shrank or vanished must stay so before it is
	// believed (200 ms), and how often all files are looked at again whether or
	// not there was an event (3 s).
	Debounce, Settle, Rescan time.Duration
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer(tracing.Scope)
	}
	if o.Meter == nil {
		o.Meter = metricnoop.NewMeterProvider().Meter(tracing.Scope)
	}
	if o.Kinds == nil {
		o.Kinds = kinds.All
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	orDefault(&o.Batch, 200)
	orDefault(&o.Linger, 20*time.Millisecond)
	orDefault(&o.PageSize, 500)
	orDefault(&o.RetryMin, 250*time.Millisecond)
	orDefault(&o.RetryMax, 10*time.Second)
	orDefault(&o.Debounce, 20*time.Millisecond)
	orDefault(&o.Settle, 200*time.Millisecond)
	orDefault(&o.Rescan, 3*time.Second)
	return o
}

func orDefault[T int | int64 | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
