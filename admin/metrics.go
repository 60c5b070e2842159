package admin

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// instruments of what is, not of what happens: they are observed when somebody
// scrapes, from a snapshot and the streams' status. What happens is counted where
// it does, in packages delta/ads and k8swatch. Names are in package tracing.
type instruments struct {
	build, revision                                    metric.Int64ObservableGauge
	kindComplete, kindState, kindObjects, kindFrontier metric.Int64ObservableGauge
	resources, tombstones, problems                    metric.Int64ObservableGauge
	envoys, held, inFlight, withheld, quarantined      metric.Int64ObservableGauge
	envoyPending                                       metric.Int64ObservableGauge
	withheldOldest, envoyLag                           metric.Float64ObservableGauge

	all []metric.Observable
	err error
}

// register adds the server's metrics to the meter.
func (s *Server) register(m metric.Meter) error {
	in := newInstruments(m)
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s.observe(o, in)
		return nil
	}, in.all...)
	return errors.Join(in.err, err)
}

func newInstruments(m metric.Meter) *instruments {
	in := &instruments{}
	gauge := func(name, text string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithDescription(text))
		in.add(g, err)
		return g
	}
	seconds := func(name, text string) metric.Float64ObservableGauge {
		g, err := m.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(text))
		in.add(g, err)
		return g
	}
	in.build = gauge(tracing.MetricBuild, "1, with the version")
	in.revision = gauge(tracing.MetricRevision, "Commits to the index")
	in.kindComplete = gauge(tracing.MetricKindComplete, "1 when the absence of the kind's objects can be relied upon")
	in.kindState = gauge(tracing.MetricKindState, "1 for the state that the kind is in")
	in.kindObjects = gauge(tracing.MetricKindObjects, "Objects of the kind in the index")
	in.kindFrontier = gauge(tracing.MetricKindFrontier, "resourceVersion up to which everything of the kind was seen; absent before its first list ended")
	in.resources = gauge(tracing.MetricResources, "xDS resources in the index")
	in.tombstones = gauge(tracing.MetricTombstones, "Removed xDS resources that some stream has yet to pass")
	in.problems = gauge(tracing.MetricProblems, "Problems of users' objects")
	in.envoys = gauge(tracing.MetricEnvoys, "Connected Envoys")
	in.held = gauge(tracing.MetricHeld, "Resources that Envoys have acknowledged, over all Envoys")
	in.inFlight = gauge(tracing.MetricInFlight, "Resources sent and not yet answered, over all Envoys")
	in.withheld = gauge(tracing.MetricWithheld, "Sends and removals that are held back, by reason and missing kind; kind is empty when it waits for an Envoy")
	in.withheldOldest = seconds(tracing.MetricWithheldOldest, "Age of the oldest of what is withheld")
	in.quarantined = gauge(tracing.MetricQuarantined, "Resources that an Envoy rejected, over all Envoys")
	in.envoyLag = seconds(tracing.MetricEnvoyLag, "How long an Envoy has owed an answer; 0 when it owes none")
	in.envoyPending = gauge(tracing.MetricEnvoyPending, "Resources that changed and wait for an Envoy's answer")
	return in
}

func (in *instruments) add(o metric.Observable, err error) {
	in.all = append(in.all, o)
	in.err = errors.Join(in.err, err)
}

func (s *Server) observe(o metric.Observer, in *instruments) {
	snap := s.o.Index.Snapshot()
	o.ObserveInt64(in.build, 1, with("version", s.o.Version))
	o.ObserveInt64(in.revision, int64(snap.Revision()))
	observeKinds(o, in, snap.Kinds())
	for _, c := range s.counts.of(snap, s.o.Types) {
		o.ObserveInt64(in.resources, int64(c.Resources), with("type", shortType(c.Type)))
		o.ObserveInt64(in.tombstones, int64(c.Tombstones), with("type", shortType(c.Type)))
	}
	observeProblems(o, in, snap.Problems())
	observeStreams(o, in, s.o.Streams(), s.now())
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
func shortType(url string) string { return delta.ShortType(url) }
