package admin

import (
	"context"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// metricsHandler makes the metrics. All are observed when they are asked for,
// from a snapshot and the streams' status, so nothing counts on a hot path.
func (s *Server) metricsHandler() (http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, err
	}
	meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)).Meter(tracing.Scope)
	in, err := newInstruments(meter)
	if err != nil {
		return nil, err
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s.observe(o, in)
		return nil
	}, in.all...)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}

// instruments by name in Prometheus' spelling: dots become underscores, a
// counter ends in _total, the unit By in _bytes.
type instruments struct {
	build, revision                                            metric.Int64ObservableGauge
	kindComplete, kindState, kindObjects, kindFrontier         metric.Int64ObservableGauge
	resources, tombstones, problems                            metric.Int64ObservableGauge
	envoys, held, inFlight, withheld, quarantined              metric.Int64ObservableGauge
	responses, sentResources, sentRemovals, bytes, acks, nacks metric.Int64ObservableCounter

	all []metric.Observable
	err error
}

func newInstruments(m metric.Meter) (*instruments, error) {
	in := &instruments{}
	gauge := func(name, text string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithDescription(text))
		in.add(g, err)
		return g
	}
	counter := func(name, text string, o ...metric.Int64ObservableCounterOption) metric.Int64ObservableCounter {
		c, err := m.Int64ObservableCounter(name, append(o, metric.WithDescription(text))...)
		in.add(c, err)
		return c
	}
	in.build = gauge("holdfast.build.info", "1, with the version")
	in.revision = gauge("holdfast.index.revision", "Commits to the index")
	in.kindComplete = gauge("holdfast.kind.complete", "1 when the absence of the kind's objects can be relied upon")
	in.kindState = gauge("holdfast.kind.state", "1 for the state that the kind is in")
	in.kindObjects = gauge("holdfast.kind.objects", "Objects of the kind in the index")
	in.kindFrontier = gauge("holdfast.kind.frontier", "resourceVersion up to which everything of the kind was seen; absent before its first list ended")
	in.resources = gauge("holdfast.resources", "xDS resources in the index")
	in.tombstones = gauge("holdfast.tombstones", "Removed xDS resources that some stream has yet to pass")
	in.problems = gauge("holdfast.problems", "Problems of users' objects")
	in.envoys = gauge("holdfast.envoys", "Connected Envoys")
	in.held = gauge("holdfast.held", "Resources that Envoys have acknowledged, over all Envoys")
	in.inFlight = gauge("holdfast.inflight", "Resources sent and not yet answered, over all Envoys")
	in.withheld = gauge("holdfast.withheld", "Sends and removals that the rule holds back, by missing kind; kind is empty when an Envoy's ACK is waited for")
	in.quarantined = gauge("holdfast.quarantined", "Resources that an Envoy rejected, over all Envoys")
	in.responses = counter("holdfast.responses", "Responses sent")
	in.sentResources = counter("holdfast.sent.resources", "Resources sent")
	in.sentRemovals = counter("holdfast.sent.removals", "Removals sent")
	in.bytes = counter("holdfast.sent.bytes", "Bytes of the responses sent", metric.WithUnit("By"))
	in.acks = counter("holdfast.acks", "Responses that Envoys accepted")
	in.nacks = counter("holdfast.nacks", "Responses that Envoys rejected")
	return in, in.err
}

func (in *instruments) add(o metric.Observable, err error) {
	in.all = append(in.all, o)
	if in.err == nil {
		in.err = err
	}
}

func (s *Server) observe(o metric.Observer, in *instruments) {
	snap := s.o.Index.Snapshot()
	streams, sums := s.streams.sums()
	o.ObserveInt64(in.build, 1, with("version", s.o.Version))
	o.ObserveInt64(in.revision, int64(snap.Revision()))
	observeKinds(o, in, snap.Kinds())
	for _, c := range s.counts.of(snap, s.o.Types) {
		o.ObserveInt64(in.resources, int64(c.Resources), with("type", shortType(c.Type)))
		o.ObserveInt64(in.tombstones, int64(c.Tombstones), with("type", shortType(c.Type)))
	}
	observeProblems(o, in, snap.Problems())
	observeStreams(o, in, streams)
	for url, t := range sums {
		typ := with("type", shortType(url))
		o.ObserveInt64(in.responses, int64(t.responses), typ)
		o.ObserveInt64(in.sentResources, int64(t.resources), typ)
		o.ObserveInt64(in.sentRemovals, int64(t.removed), typ)
		o.ObserveInt64(in.bytes, int64(t.bytes), typ)
		o.ObserveInt64(in.acks, int64(t.acks), typ)
		o.ObserveInt64(in.nacks, int64(t.nacks), typ)
	}
}

var states = []index.State{index.Unknown, index.Listing, index.Observed, index.Absent, index.Forbidden, index.Failing}

func observeKinds(o metric.Observer, in *instruments, kinds []*index.KindRow) {
	for _, k := range kinds {
		kind := with("kind", string(k.Kind))
		o.ObserveInt64(in.kindComplete, number(k.Complete()), kind)
		o.ObserveInt64(in.kindObjects, int64(k.Objects), kind)
		if k.Frontier.Observed {
			o.ObserveInt64(in.kindFrontier, int64(k.Frontier.Version), kind)
		}
		for _, st := range states {
			o.ObserveInt64(in.kindState, number(k.State == st), with("kind", string(k.Kind), "state", string(st)))
		}
	}
}

func observeProblems(o metric.Observer, in *instruments, problems []index.Problem) {
	n := map[index.Severity]int64{index.Error: 0, index.Warning: 0}
	for _, p := range problems {
		n[p.Severity]++
	}
	for severity, count := range n {
		o.ObserveInt64(in.problems, count, with("severity", string(severity)))
	}
}

func observeStreams(o metric.Observer, in *instruments, streams []delta.StreamStatus) {
	type withheldKey struct{ typ, action, kind string }
	held, inFlight, quarantined, withheld := map[string]int64{}, map[string]int64{}, map[string]int64{}, map[withheldKey]int64{}
	for _, s := range streams {
		for _, t := range s.Types {
			typ := shortType(t.Type)
			held[typ] += int64(t.Held)
			inFlight[typ] += int64(t.InFlight)
			quarantined[typ] += int64(len(t.Quarantined))
			for _, w := range t.Withheld {
				for _, kind := range missingKinds(w) {
					withheld[withheldKey{typ, w.Action, kind}]++
				}
			}
		}
	}
	o.ObserveInt64(in.envoys, int64(len(streams)))
	for typ := range held {
		o.ObserveInt64(in.held, held[typ], with("type", typ))
		o.ObserveInt64(in.inFlight, inFlight[typ], with("type", typ))
		o.ObserveInt64(in.quarantined, quarantined[typ], with("type", typ))
	}
	for k, n := range withheld {
		o.ObserveInt64(in.withheld, n, with("type", k.typ, "action", k.action, "kind", k.kind))
	}
}

func missingKinds(w delta.Withheld) []string {
	if len(w.Missing) == 0 {
		return []string{""}
	}
	out := make([]string, 0, len(w.Missing))
	for _, l := range w.Missing {
		out = append(out, string(l.Kind))
	}
	return out
}

func with(pairs ...string) metric.MeasurementOption {
	kvs := make([]attribute.KeyValue, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		kvs = append(kvs, attribute.String(pairs[i], pairs[i+1]))
	}
	return metric.WithAttributes(kvs...)
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// shortType gives a type URL's last part: "Cluster".
func shortType(url string) string {
	return url[strings.LastIndexAny(url, "./")+1:]
}
