package tracing

import (
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
)

// Metrics is where all packages register their instruments, and the handler that
// shows them to Prometheus. Exemplars are shown to those who ask for OpenMetrics.
type Metrics struct {
	Meter   metric.Meter
	Handler http.Handler
}

// NewMetrics makes an empty set of metrics, beside those of the Go runtime and
// the process.
func NewMetrics() (Metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return Metrics{}, fmt.Errorf("metrics: %w", err)
	}
	return Metrics{
		Meter:   sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)).Meter(Scope),
		Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
	}, nil
}

// Buckets for durations in seconds: from what is usual for a change (a
// millisecond) to what calls for a person (a minute).
var Buckets = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
