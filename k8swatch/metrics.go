package k8swatch

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// How a list ended, for its metric.
const (
	outcomeComplete = "complete"
	outcomeFailed   = "failed"
)

// meters are the instruments of a source.
type meters struct {
	lists metric.Float64Histogram
	age   metric.Float64ObservableGauge
	meter metric.Meter
}

func newMeters(m metric.Meter) (*meters, error) {
	lists, err1 := m.Float64Histogram(tracing.MetricListDuration, metric.WithUnit("s"), tracing.Buckets,
		metric.WithDescription("Time that a list of a kind took, all pages"))
	age, err2 := m.Float64ObservableGauge(tracing.MetricFrontierAge, metric.WithUnit("s"),
		metric.WithDescription("Time since the API server last told something of the kind: a list, an event or a bookmark"))
	return &meters{lists: lists, age: age, meter: m}, errors.Join(err1, err2)
}

func (m *meters) listed(ctx context.Context, kind index.Kind, outcome string, took time.Duration) {
	m.lists.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("kind", string(kind)), attribute.String("outcome", outcome)))
}

// ages has the age of each kind's frontier observed at every scrape.
func (m *meters) ages(states []*kindState, now func() time.Time) error {
	_, err := m.meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, s := range states {
			if heard := s.heard.Load(); heard != 0 {
				o.ObserveFloat64(m.age, now().Sub(time.Unix(0, heard)).Seconds(), metric.WithAttributes(attribute.String("kind", string(s.kind))))
			}
		}
		return nil
	}, m.age)
	return err
}
