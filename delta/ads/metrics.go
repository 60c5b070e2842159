package ads

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// meters count what goes over all streams. They outlive the streams.
type meters struct {
	responses, resources, removals, bytes, acks, nacks metric.Int64Counter
	latency                                            metric.Float64Histogram
	// of holds the attributes of each type of ours; what clients make up is "other".
	of map[string]metric.MeasurementOption
}

func newMeters(m metric.Meter) (*meters, error) {
	in := &meters{of: map[string]metric.MeasurementOption{}}
	var errs []error
	counter := func(name, text string, o ...metric.Int64CounterOption) metric.Int64Counter {
		c, err := m.Int64Counter(name, append(o, metric.WithDescription(text))...)
		errs = append(errs, err)
		return c
	}
	in.responses = counter(tracing.MetricResponses, "Responses sent")
	in.resources = counter(tracing.MetricSentResources, "Resources sent")
	in.removals = counter(tracing.MetricSentRemovals, "Removals sent")
	in.bytes = counter(tracing.MetricSentBytes, "Bytes of the responses sent", metric.WithUnit("By"))
	in.acks = counter(tracing.MetricAcks, "Responses that Envoys accepted")
	in.nacks = counter(tracing.MetricNacks, "Responses that Envoys rejected")
	var err error
	in.latency, err = m.Float64Histogram(tracing.MetricAckDuration, metric.WithUnit("s"), tracing.Buckets,
		metric.WithDescription("Time from the arrival of the oldest change that a response carries to the Envoy's ACK"))
	for _, url := range delta.Types() {
		in.of[url] = typeOption(url)
		in.zero(in.of[url])
	}
	return in, errors.Join(append(errs, err)...)
}

// zero shows a type before anything of it was sent: a rate needs a beginning.
func (in *meters) zero(typ metric.MeasurementOption) {
	for _, c := range []metric.Int64Counter{in.responses, in.resources, in.removals, in.bytes, in.acks, in.nacks} {
		c.Add(context.Background(), 0, typ)
	}
}

func typeOption(url string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("type", delta.ShortType(url))))
}

var other = typeOption("other")

func (in *meters) typ(url string) metric.MeasurementOption {
	if o, ok := in.of[url]; ok {
		return o
	}
	return other
}

func (in *meters) sent(r *delta.Response, size int) {
	ctx, typ := context.Background(), in.typ(r.Type)
	in.responses.Add(ctx, 1, typ)
	in.resources.Add(ctx, int64(len(r.Send)), typ)
	in.removals.Add(ctx, int64(len(r.Remove)), typ)
	in.bytes.Add(ctx, int64(size), typ)
}

// acked takes the time that a change took. ctx has the response's span, of which
// an exemplar is made.
func (x *session) acked(ctx context.Context, url string, oldest index.Revision) {
	in := x.server.meters
	in.acks.Add(ctx, 1, in.typ(url))
	if at, ok := x.server.opts.Arrivals.Of(uint64(oldest)); ok {
		in.latency.Record(ctx, time.Since(at).Seconds(), in.typ(url))
	}
}
