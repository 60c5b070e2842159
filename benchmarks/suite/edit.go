package suite

import (
	"context"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/client"
	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
)

// edits measures each sort of edit, one at a time on an otherwise idle holdfast,
// with one client: from the write at the API server to the client's last ACK
// for it; CPU, resources and bytes are means over the repetitions.
func (r *rig) edits(ctx context.Context) error {
	for _, e := range workload.Edits {
		if err := r.sort(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *rig) sort(ctx context.Context, e workload.Edit) error {
	if err := r.silent(ctx, r.leader); err != nil {
		return err
	}
	was := r.leader.Totals()
	m, err := startMeter(r.server.PID())
	if err != nil {
		return err
	}
	var acked []time.Duration
	for range r.Repeat {
		took, err := r.once(ctx, e)
		if err != nil {
			return err
		}
		acked = append(acked, took)
	}
	if err := r.silent(ctx, r.leader); err != nil {
		return err
	}
	used, err := m.used()
	if err != nil {
		return err
	}
	n := float64(r.Repeat)
	t := r.leader.Totals().Minus(was)
	r.note("edit", string(e), 1, map[report.Metric]float64{
		report.Acked50: report.Quantile(acked, 0.5), report.Acked99: report.Quantile(acked, 0.99),
		report.CPU:       report.Milliseconds(used) / n,
		report.Resources: float64(t.Resources) / n, report.Removed: float64(t.Removed) / n, report.Bytes: float64(t.Received) / n,
	}, "")
	return nil
}

// once makes one edit and waits for the leader's ACKs.
func (r *rig) once(ctx context.Context, e workload.Edit) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r.leader.Forget()
	_, at, keys, err := r.edit(ctx, e)
	if err != nil {
		return 0, err
	}
	last, err := r.leader.Await(ctx, keys)
	return last.Sub(at), err
}

// Churn is what rolling deployments do all day.
const (
	churnRate = 100 // changes a second
	churnFor  = 10 * time.Second
)

// churn changes endpoints at a steady rate, whether or not the client keeps up.
func (r *rig) churn(ctx context.Context) error {
	if err := r.silent(ctx, r.leader); err != nil {
		return err
	}
	was := r.leader.Totals()
	r.leader.Forget()
	m, err := startMeter(r.server.PID())
	if err != nil {
		return err
	}
	type written struct {
		at  time.Time
		key client.Key
	}
	defer r.profile(ctx, "churn", churnFor)()
	var writes []written
	t := time.NewTicker(time.Second / churnRate)
	defer t.Stop()
	for end := time.Now().Add(churnFor); time.Now().Before(end); {
		<-t.C
		_, at, keys, err := r.edit(ctx, workload.Endpoint)
		if err != nil {
			return err
		}
		for _, k := range keys {
			writes = append(writes, written{at, k})
		}
	}
	used, err := m.used()
	if err != nil {
		return err
	}
	if err := r.silent(ctx, r.leader); err != nil {
		return err
	}
	log := r.leader.Log()
	var acked []time.Duration
	for _, w := range writes {
		for _, e := range log {
			if e.Key == w.key && e.At.After(w.at) {
				acked = append(acked, e.At.Sub(w.at))
				break
			}
		}
	}
	n := float64(len(writes))
	sent := r.leader.Totals().Minus(was)
	now, _, err := memory(r.server.PID())
	if err != nil {
		return err
	}
	r.note("churn", "endpoints", 1, map[report.Metric]float64{
		report.Rate: n / churnFor.Seconds(), report.CPU: report.Milliseconds(used) / n,
		report.Acked50: report.Quantile(acked, 0.5), report.Acked99: report.Quantile(acked, 0.99),
		report.Resources: float64(sent.Resources) / n, report.Bytes: float64(sent.Received) / n, report.RSS: report.Megabytes(now),
	}, "each figure is for one change")
	return nil
}
