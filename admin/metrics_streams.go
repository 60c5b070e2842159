package admin

import (
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/holdfast-xds/holdfast/delta"
)

// maxNodes bounds the Envoys that have a series of their own: the first that are
// connected. The others share one, with the worst of them.
const maxNodes = 100

const otherNodes = "(others)"

// streamSums are sums over all streams.
type streamSums struct {
	held, inFlight, quarantined map[string]int64 // by type
	withheld                    map[withheldKey]withheldSum
	nodes                       map[string]behind
}

// withheldKey has few values: types, actions, kinds and classes of reasons are ours.
type withheldKey struct{ typ, action, kind, reason string }

type withheldSum struct {
	count int64
	since time.Time // of the oldest
}

// behind is how far behind an Envoy is.
type behind struct {
	lag     time.Duration
	pending int64
}

func observeStreams(o metric.Observer, in *instruments, streams []delta.StreamStatus, now time.Time) {
	s := streamSums{map[string]int64{}, map[string]int64{}, map[string]int64{}, map[withheldKey]withheldSum{}, map[string]behind{}}
	for i := range streams {
		s.add(&streams[i], now)
	}
	o.ObserveInt64(in.envoys, int64(len(streams)))
	for typ := range s.held {
		o.ObserveInt64(in.held, s.held[typ], with("type", typ))
		o.ObserveInt64(in.inFlight, s.inFlight[typ], with("type", typ))
		o.ObserveInt64(in.quarantined, s.quarantined[typ], with("type", typ))
	}
	for k, w := range s.withheld {
		labels := with("type", k.typ, "action", k.action, "kind", k.kind, "reason", k.reason)
		o.ObserveInt64(in.withheld, w.count, labels)
		o.ObserveFloat64(in.withheldOldest, now.Sub(w.since).Seconds(), labels)
	}
	for node, b := range s.nodes {
		o.ObserveFloat64(in.envoyLag, b.lag.Seconds(), with("node", node))
		o.ObserveInt64(in.envoyPending, b.pending, with("node", node))
	}
}

func (s *streamSums) add(x *delta.StreamStatus, now time.Time) {
	b := behind{}
	for i := range x.Types {
		t := &x.Types[i]
		typ := shortType(t.Type)
		s.held[typ] += int64(t.Held)
		s.inFlight[typ] += int64(t.InFlight)
		s.quarantined[typ] += int64(len(t.Quarantined))
		for _, g := range t.Grouped() {
			s.hold(typ, &g)
		}
		b.pending += int64(t.Pending)
		if !t.InFlightSince.IsZero() {
			b.lag = max(b.lag, now.Sub(t.InFlightSince))
		}
	}
	s.node(x.Node, b)
}

func (s *streamSums) hold(typ string, w *delta.WithheldGroup) {
	kinds := []string{""}
	if len(w.Missing) > 0 {
		kinds = kinds[:0]
	}
	for _, l := range w.Missing {
		kinds = append(kinds, string(l.Kind))
	}
	for _, kind := range kinds {
		k := withheldKey{typ, w.Action, kind, w.Reason}
		sum := s.withheld[k]
		if sum.count == 0 || w.Since.Before(sum.since) {
			sum.since = w.Since
		}
		sum.count += int64(w.Count)
		s.withheld[k] = sum
	}
}

func (s *streamSums) node(name string, b behind) {
	if _, known := s.nodes[name]; !known && len(s.nodes) >= maxNodes {
		name = otherNodes
	}
	worst := s.nodes[name]
	s.nodes[name] = behind{max(worst.lag, b.lag), max(worst.pending, b.pending)}
}
