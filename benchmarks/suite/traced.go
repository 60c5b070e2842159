package suite

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
)

// whoseTime tells, from holdfast's own traces, how long edits took from their write to
// Envoy's ACK, and whose time that was: from the moment that holdfast heard of it until
// the response was sent is holdfast's; until the ACK it is Envoy's; what is left is the
// API server's, the network's and the machine's. Only an edit that is one response has
// these parts, and with many clients holdfast does not keep the spans of all.
func (x *envoyRig) whoseTime(ctx context.Context, e workload.Edit, writes []time.Time, figures map[report.Metric]float64) error {
	if e != workload.Route && e != workload.Endpoint {
		return nil
	}
	traces, err := x.server.Traces(ctx, 4*len(writes)+20)
	if err != nil {
		return err
	}
	var own, envoys, beyond []time.Duration
	for i, at := range writes {
		until := time.Now()
		if i+1 < len(writes) {
			until = writes[i+1]
		}
		heard, response, dropped := find(traces, at, until)
		switch {
		case dropped:
			return nil
		case response == nil:
			return errors.New("no trace of an edit with a response to Envoy")
		}
		answer := response.End().Sub(response.Start)
		own = append(own, response.Start.Sub(heard))
		envoys = append(envoys, answer)
		beyond = append(beyond, response.End().Sub(at)-answer)
	}
	figures[report.Own50], figures[report.Own99] = report.Quantile(own, 0.5), report.Quantile(own, 0.99)
	figures[report.EnvoyAck50], figures[report.Beyond99] = report.Quantile(envoys, 0.5), report.Quantile(beyond, 0.99)
	return nil
}

// find gives the response to Envoy in a trace that began within a time, and when that
// trace began.
func find(traces []holdfast.Trace, from, until time.Time) (began time.Time, response *holdfast.Span, dropped bool) {
	for i := range traces {
		t := &traces[i]
		if t.Start.Before(from) || !t.Start.Before(until) {
			continue
		}
		for j := range t.Spans {
			s := &t.Spans[j]
			if s.Name == "holdfast.response" && s.Attributes["holdfast.node.id"] == nodeEnvoy {
				return t.Start, s, false
			}
		}
		dropped = dropped || t.Dropped > 0
	}
	return time.Time{}, nil, dropped
}
