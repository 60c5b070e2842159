package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
)

// The scenarios, by the names that people choose them by.
const (
	Start   = "start"
	Restart = "restart"
	Edit    = "edit"
	Churn   = "churn"
	FanOut  = "fan-out"
	Peers   = "peers"
	Envoy   = "envoy" // a real one
	TLS     = "tls"   // a real one, and every host has a certificate
)

// Scenarios lists them in the order in which they run.
var Scenarios = []string{Start, Edit, Churn, Restart, Envoy, FanOut, Peers, TLS}

// Step is one size and what is measured there.
type Step struct {
	Hosts     int
	Source    string // one of those named in origin.go
	Scenarios []string
	Clients   []int // of fan-out
}

// Plan is what a run measures.
type Plan []Step

// Quick takes some 15 minutes on 2 cores; Full has all sizes, a thousand clients
// where each is sent 20 MB, and the real API server.
var (
	Quick = Plan{
		{Source: Synthetic, Hosts: 300, Scenarios: []string{Start, Edit, Churn, Envoy, FanOut}, Clients: []int{1, 1000}},
		{Source: Synthetic, Hosts: 3407, Scenarios: []string{Start, Edit, Churn, Restart, Envoy, FanOut, Peers}, Clients: []int{1, 10, 100}},
		{Source: Synthetic, Hosts: 10_000, Scenarios: []string{Start, Edit, Churn, Restart, Envoy, FanOut, Peers}, Clients: []int{1, 10}},
		{Source: InFolder, Hosts: 3407, Scenarios: []string{Start, Edit, Restart}},
	}
	Full = Plan{
		{Source: Synthetic, Hosts: 300, Scenarios: []string{Start, Edit, Churn, Restart, Envoy, FanOut, Peers}, Clients: []int{1, 10, 100, 1000}},
		{Source: Synthetic, Hosts: 3407, Scenarios: Scenarios, Clients: []int{1, 10, 100, 1000}},
		{Source: Synthetic, Hosts: 10_000, Scenarios: []string{Start, Edit, Churn, Restart, Envoy, FanOut, Peers}, Clients: []int{1, 10, 100, 1000}},
		{Source: Synthetic, Hosts: 30_000, Scenarios: []string{Start, Edit, Churn, Restart}},
		{Source: Synthetic, Hosts: 100_000, Scenarios: []string{Start, Edit, Churn, Restart}},
		{Source: InFolder, Hosts: 3407, Scenarios: []string{Start, Edit, Restart}},
		{Source: InFolder, Hosts: 10_000, Scenarios: []string{Start, Edit, Restart}},
		{Source: RealKube, Hosts: 3407, Scenarios: []string{Start, Edit, Churn, Restart, Envoy}},
		{Source: RealKube, Hosts: 10_000, Scenarios: []string{Start, Edit, Churn, Restart, Envoy}},
	}
)

// Only gives the plan with another source, other sizes, or some of the scenarios
// alone; empty leaves each as it is.
func (p Plan) Only(source string, sizes []int, scenarios []string) Plan {
	out := p
	if source != "" && len(sizes) == 0 {
		out = slices.DeleteFunc(slices.Clone(p), func(s Step) bool { return s.Source != source })
	}
	if len(sizes) > 0 {
		out = nil
		for _, n := range sizes {
			out = append(out, Step{Source: cmp.Or(source, Synthetic), Hosts: n, Scenarios: Scenarios, Clients: []int{1, 10, 100, 1000}})
		}
	}
	out = slices.Clone(out)
	for i := range out {
		if len(scenarios) > 0 {
			out[i].Scenarios = slices.DeleteFunc(slices.Clone(out[i].Scenarios), func(s string) bool { return !slices.Contains(scenarios, s) })
		}
	}
	return slices.DeleteFunc(out, func(s Step) bool { return len(s.Scenarios) == 0 })
}

// Needs tells whether a plan has a source.
func (p Plan) Needs(source string) bool {
	return slices.ContainsFunc(p, func(s Step) bool { return s.Source == source })
}

// Run measures a plan.
func Run(ctx context.Context, c Config, run *report.Run, p Plan) error {
	for _, s := range p {
		if err := c.step(ctx, run, s); err != nil {
			return fmt.Errorf("%d hosts: %w", s.Hosts, err)
		}
	}
	return nil
}

func (c Config) step(ctx context.Context, run *report.Run, s Step) error {
	c.Log("%d hosts: filling the source, %s", s.Hosts, s.Source)
	if !slices.Equal(s.Scenarios, []string{TLS}) {
		if err := c.with(ctx, run, workload.New, s, func(r *rig) error { return r.scenarios(ctx, s) }); err != nil {
			return err
		}
	}
	if !slices.Contains(s.Scenarios, TLS) || c.Envoy == "" {
		return nil
	}
	for _, mode := range []string{"chains", "on-demand"} {
		if err := c.with(ctx, run, workload.NewTLS, s, func(r *rig) error { return r.tls(ctx, mode) }); err != nil {
			return fmt.Errorf("tls, %s: %w", mode, err)
		}
	}
	return nil
}

// with sets a rig up, and takes it down again.
func (c Config) with(ctx context.Context, run *report.Run, work newWork, s Step, do func(*rig) error) error {
	b, err := startBackends(c.Backends)
	if err != nil {
		return err
	}
	r, err := newRig(ctx, c, run, work, s, b.list)
	if err == nil {
		err = do(r)
	}
	if r != nil {
		err = errors.Join(err, r.close())
	}
	return errors.Join(err, b.close())
}

// scenarios runs what the step names. All but the peers need the start.
func (r *rig) scenarios(ctx context.Context, s Step) error {
	has := func(name string) bool { return slices.Contains(s.Scenarios, name) }
	if has(Start) {
		if err := r.floor(ctx); err != nil {
			return fmt.Errorf("informers: %w", err)
		}
	}
	for _, x := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"", r.firstStart},
		{Edit, r.edits},
		{Churn, r.churn},
		{Restart, r.restarts},
		{Envoy, r.real},
		{FanOut, func(ctx context.Context) error { return r.fanOut(ctx, s.Clients) }},
		{Peers, r.peers},
	} {
		if x.name != "" && !has(x.name) || x.name == Envoy && r.Config.Envoy == "" {
			continue
		}
		if err := x.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}
