package k8swatch

import (
	"testing"

	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// untraced is the span of lists that nobody looks at.
func untraced(t *testing.T) *listSpan {
	t.Helper()
	m, err := newMeters(metricnoop.NewMeterProvider().Meter(""))
	must(t, err)
	tracer := tracenoop.NewTracerProvider().Tracer("")
	return &listSpan{tracer: tracer, start: startUp(tracer, nil), meters: m}
}
