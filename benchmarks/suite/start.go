package suite

import (
	"context"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/peer"
	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/kinds"
)

// firstStart measures from the start of the process until a fresh client has
// acknowledged everything, and then what the process has used.
func (r *rig) firstStart(ctx context.Context) error {
	if err := r.server.Start(); err != nil {
		return err
	}
	began := r.server.Started
	defer r.profile(ctx, "start", 5*time.Second)()
	if err := r.connect(ctx); err != nil {
		return err
	}
	if err := r.complete(ctx, r.leader); err != nil {
		return err
	}
	took := time.Since(began)
	used, err := cpu(r.server.PID())
	if err != nil {
		return err
	}
	if err := r.silent(ctx, r.leader); err != nil {
		return err
	}
	now, peak, err := rested(ctx, r.server.PID())
	if err != nil {
		return err
	}
	t := r.leader.Totals()
	r.note("first-start", "", 1, map[report.Metric]float64{
		report.Start: report.Milliseconds(took), report.CPU: report.Milliseconds(used),
		report.Resources: float64(t.Resources), report.Bytes: float64(t.Received),
		report.RSS: report.Megabytes(now), report.Peak: report.Megabytes(peak),
		report.PerHost: float64(now) / 1024 / float64(r.hosts),
	}, "")
	return nil
}

// floor measures a plain informer set on the same API server.
func (r *rig) floor(ctx context.Context) error {
	if r.origin.kubeconfig() == "" {
		return nil
	}
	began := time.Now()
	p, err := peer.Start(r.Self, peer.Informers, r.origin.kubeconfig())
	if err != nil {
		return err
	}
	defer p.Close()
	if _, err := p.Reply(); err != nil {
		return err
	}
	took := time.Since(began)
	used, err := cpu(p.PID())
	if err != nil {
		return err
	}
	now, peak, err := rested(ctx, p.PID())
	if err != nil {
		return err
	}
	row := report.Row{Scenario: "first-start", Subject: peer.Informers, Source: r.source, Hosts: r.hosts, Figures: map[report.Metric]float64{
		report.Start: report.Milliseconds(took), report.CPU: report.Milliseconds(used),
		report.RSS: report.Megabytes(now), report.Peak: report.Megabytes(peak),
		report.PerHost: float64(now) / 1024 / float64(r.hosts),
	}, Note: "the floor: lists and decodes, serves nothing"}
	r.run.Add(row)
	r.Log("%s", row.String())
	return nil
}

// changedMeanwhile is how many hosts are edited while the control plane is away.
const changedMeanwhile = 10

// restarts measures what a client that comes back is sent.
func (r *rig) restarts(ctx context.Context) error {
	if err := r.restart(ctx, "unchanged", nothing, nothing); err != nil {
		return err
	}
	change := func() error {
		for range changedMeanwhile {
			if _, _, _, err := r.edit(ctx, workload.Route); err != nil {
				return err
			}
		}
		return nil
	}
	if err := r.restart(ctx, "changed", change, nothing); err != nil {
		return err
	}
	h, ok := r.origin.(holder)
	if !ok {
		return nil
	}
	return r.restart(ctx, "slow-kind", func() error {
		h.Hold(kinds.EndpointSlice)
		return change()
	}, func() error {
		defer h.Release(kinds.EndpointSlice)
		return r.silent(ctx, r.leader)
	})
}

// restart kills holdfast, lets something happen, starts it again, and lets
// something happen before all kinds can be observed.
func (r *rig) restart(ctx context.Context, variant string, away, before func() error) error {
	if err := r.server.Kill(); err != nil {
		return err
	}
	_ = r.leader.Ended(ctx)
	if err := away(); err != nil {
		return err
	}
	was := r.leader.Totals()
	if err := r.server.Start(); err != nil {
		return err
	}
	began := r.server.Started
	if err := r.connect(ctx); err != nil {
		return err
	}
	connected := time.Since(began)
	if err := before(); err != nil {
		return err
	}
	early := r.leader.Totals().Minus(was)
	if err := r.quiet(ctx, r.leader); err != nil {
		return err
	}
	used, err := cpu(r.server.PID())
	if err != nil {
		return err
	}
	now, peak, err := rested(ctx, r.server.PID())
	if err != nil {
		return err
	}
	t := r.leader.Totals().Minus(was)
	note := ""
	if variant == "slow-kind" {
		note = report.Number(float64(early.Resources)) + " resources and " + report.Number(float64(early.Removed)) + " removals while EndpointSlices were not listed"
	}
	r.note("restart", variant, 1, map[report.Metric]float64{
		report.Connect: report.Milliseconds(connected), report.CPU: report.Milliseconds(used), report.RSS: report.Megabytes(now), report.Peak: report.Megabytes(peak),
		report.Resources: float64(t.Resources), report.Removed: float64(t.Removed), report.Bytes: float64(t.Received),
	}, note)
	return nil
}
