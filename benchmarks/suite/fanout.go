package suite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/client"
	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
)

// together is how many clients connect at once; each is sent everything.
const together = 8

// fanOut measures with more and more clients, of which one is a real Envoy: what they
// add to memory, from the write of a route or an endpoint to the ACK of each of them,
// and how soon Envoy serves it.
func (r *rig) fanOut(ctx context.Context, sizes []int) error {
	if r.Envoy == "" {
		return r.fan(ctx, sizes, func(int) error { return nil })
	}
	e, err := r.startEnvoy(ctx)
	if err != nil {
		return err
	}
	x := r.underLoad(ctx, e)
	defer x.load.Stop()
	x.scenario = "fan-out-envoy"
	err = r.fan(ctx, sizes, func(n int) error {
		x.clients = n + 1
		for _, edit := range []workload.Edit{workload.Route, workload.Endpoint} {
			if err := x.sort(ctx, edit); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, e.Stop())
}

func (r *rig) fan(ctx context.Context, sizes []int, envoys func(n int) error) error {
	if err := r.silent(ctx, r.leader); err != nil {
		return err
	}
	clients := []*client.Client{r.leader}
	alone, _, err := memory(r.server.PID())
	if err != nil {
		return err
	}
	for _, n := range sizes {
		m, err := startMeter(r.server.PID())
		if err != nil {
			return err
		}
		wait := r.profile(ctx, fmt.Sprintf("fan-out-%d", n), 5*time.Second)
		began, before := time.Now(), len(clients)
		if clients, err = r.grow(ctx, clients, n); err != nil {
			return err
		}
		took := time.Since(began)
		wait()
		used, err := m.used()
		if err != nil {
			return err
		}
		if err := r.connected(ctx, n, n-before, alone, took, used); err != nil {
			return err
		}
		for _, e := range []workload.Edit{workload.Route, workload.Endpoint} {
			if err := r.spread(ctx, clients, e); err != nil {
				return err
			}
		}
		if err := envoys(n); err != nil {
			return err
		}
	}
	return closeAll(clients[1:])
}

func (r *rig) connected(ctx context.Context, n, added int, alone int64, took, used time.Duration) error {
	if err := r.silent(ctx, r.leader); err != nil {
		return err
	}
	now, peak, err := rested(ctx, r.server.PID())
	if err != nil {
		return err
	}
	figures := map[report.Metric]float64{report.RSS: report.Megabytes(now), report.Peak: report.Megabytes(peak)}
	if added > 0 {
		figures[report.Connect] = report.Milliseconds(took) / float64(added)
		figures[report.CPU] = report.Milliseconds(used) / float64(added)
	}
	r.note("fan-out", "connected", n, figures, fmt.Sprintf("%+.1f MB to one client alone; time and CPU for each client that connects fresh", report.Megabytes(now-alone)))
	return nil
}

// grow connects more clients, a few at a time.
func (r *rig) grow(ctx context.Context, clients []*client.Client, n int) ([]*client.Client, error) {
	for len(clients) < n {
		var wave []*client.Client
		for len(wave) < together && len(clients)+len(wave) < n {
			c, err := r.fleet.NewClient(fmt.Sprintf("follower-%d", len(clients)+len(wave)), r.server.Config.XDS.String(), false)
			if err != nil {
				return clients, err
			}
			wave = append(wave, c)
		}
		errs := make([]error, len(wave))
		var all sync.WaitGroup
		for i, c := range wave {
			all.Go(func() {
				if errs[i] = c.Connect(ctx); errs[i] == nil {
					errs[i] = r.complete(ctx, c)
				}
			})
		}
		all.Wait()
		clients = append(clients, wave...)
		if err := errors.Join(errs...); err != nil {
			return clients, err
		}
	}
	return clients, nil
}

// spread edits, and waits until every client has it.
func (r *rig) spread(ctx context.Context, clients []*client.Client, e workload.Edit) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m, err := startMeter(r.server.PID())
	if err != nil {
		return err
	}
	defer r.profile(ctx, fmt.Sprintf("spread-%s-%d", e, len(clients)), 5*time.Second)()
	var acked, slowest []time.Duration
	for range r.Repeat {
		for _, c := range clients {
			c.Forget()
		}
		_, at, keys, err := r.edit(ctx, e)
		if err != nil {
			return err
		}
		worst := time.Duration(0)
		for _, c := range clients {
			last, err := c.Await(ctx, keys)
			if err != nil {
				return err
			}
			took := last.Sub(at)
			acked = append(acked, took)
			worst = max(worst, took)
		}
		slowest = append(slowest, worst)
	}
	used, err := m.used()
	if err != nil {
		return err
	}
	r.note("fan-out", string(e), len(clients), map[report.Metric]float64{
		report.Acked50: report.Quantile(acked, 0.5), report.Acked99: report.Quantile(acked, 0.99), report.AckedMax: report.Quantile(slowest, 1),
		report.CPU: report.Milliseconds(used) / float64(r.Repeat),
	}, "")
	return nil
}

func closeAll(clients []*client.Client) error {
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
