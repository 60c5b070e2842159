package suite

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/client"
	"github.com/holdfast-xds/holdfast/benchmarks/peer"
	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/index"
)

// peers measures go-control-plane's cache with one client, fed with the
// resources that our index makes. Its figures hold no watching and no
// translation, ours do.
func (r *rig) peers(ctx context.Context) error {
	return errors.Join(r.peer(ctx, peer.Delta), r.peer(ctx, peer.SotW))
}

// rival is one peer at work.
type rival struct {
	*rig
	name    string
	process *peer.Process
	fleet   *client.Fleet
	client  *client.Client
}

func (r *rig) peer(ctx context.Context, name string) error {
	p, err := peer.Start(r.Self, name)
	if err != nil {
		return err
	}
	defer p.Close()
	x := &rival{rig: r, name: name, process: p, fleet: client.NewFleet(ctx)}
	defer x.fleet.Close()
	if err := x.start(ctx); err != nil {
		return err
	}
	for _, e := range []workload.Edit{workload.Route, workload.Endpoint, workload.ClusterPolicy} {
		if err := x.edits(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// start feeds it everything and connects a client.
func (x *rival) start(ctx context.Context) error {
	s := x.shadow.Index.Snapshot()
	for _, url := range client.Types {
		var all []peer.Resource
		for r := range s.Resources(url) {
			all = append(all, peer.Resource{Type: url, Name: r.Name, Body: r.Body})
		}
		if _, err := x.process.Feed(peer.Feed{Resources: all}); err != nil {
			return err
		}
	}
	m, err := startMeter(x.process.PID())
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := x.process.Feed(peer.Feed{Serve: true}); err != nil {
		return err
	}
	if x.client, err = x.fleet.NewClient("rival", x.process.Address, false); err != nil {
		return err
	}
	if x.name == peer.SotW {
		err = x.client.ConnectSotW(ctx)
	} else {
		err = x.client.Connect(ctx)
	}
	if err == nil {
		err = x.complete(ctx, x.client)
	}
	if err != nil {
		return err
	}
	took := time.Since(began)
	if err := x.silent(ctx, x.client); err != nil {
		return err
	}
	return x.row("first-start", "", m, 1, x.client.Totals(), map[report.Metric]float64{report.Start: report.Milliseconds(took)}, "from its first snapshot on, with all resources at hand")
}

func (x *rival) row(scenario, variant string, m meter, n float64, t client.Totals, figures map[report.Metric]float64, note string) error {
	used, err := m.used()
	if err != nil {
		return err
	}
	now, peak, err := memory(x.process.PID())
	if err != nil {
		return err
	}
	figures[report.CPU] = report.Milliseconds(used) / n
	figures[report.RSS], figures[report.Peak] = report.Megabytes(now), report.Megabytes(peak)
	figures[report.Resources], figures[report.Bytes] = float64(t.Resources)/n, float64(t.Received)/n
	row := report.Row{Scenario: scenario, Variant: variant, Subject: x.name, Source: x.source, Hosts: x.hosts, Clients: 1, Figures: figures, Note: note}
	x.run.Add(row)
	x.Log("%s", row.String())
	return nil
}

// rivalRepeat is less than ours: these take their time.
const rivalRepeat = 5

func (x *rival) edits(ctx context.Context, e workload.Edit) error {
	was := x.client.Totals()
	m, err := startMeter(x.process.PID())
	if err != nil {
		return err
	}
	var acked []time.Duration
	for range rivalRepeat {
		took, err := x.once(ctx, e)
		if err != nil {
			return err
		}
		acked = append(acked, took)
	}
	if err := x.silent(ctx, x.client); err != nil {
		return err
	}
	return x.row("edit", string(e), m, rivalRepeat, x.client.Totals().Minus(was), map[report.Metric]float64{
		report.Acked50: report.Quantile(acked, 0.5), report.Acked99: report.Quantile(acked, 0.99),
	}, "")
}

// once makes an edit in the shadow, feeds what it changed and waits until the
// client has acknowledged it.
func (x *rival) once(ctx context.Context, e workload.Edit) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, changes := x.work.Next(e)
	if _, err := x.origin.write(ctx, changes); err != nil {
		return 0, err
	}
	before := x.shadow.Index.Snapshot()
	touched := map[index.ResourceKey]bool{}
	for _, commit := range x.shadow.Write(changes) {
		for _, k := range commit.Changed {
			touched[k] = true
		}
	}
	feed, wanted := x.feed(before, x.shadow.Index.Snapshot(), touched)
	x.client.Forget()
	at := time.Now()
	if _, err := x.process.Feed(feed); err != nil {
		return 0, err
	}
	last, err := x.client.Await(ctx, wanted)
	return last.Sub(at), err
}

func (x *rival) feed(before, after *index.Snapshot, touched map[index.ResourceKey]bool) (peer.Feed, []client.Key) {
	f := peer.Feed{Serve: true}
	var wanted []client.Key
	for k := range touched {
		t, ok := client.TypeOf(k.Type)
		if !ok {
			continue
		}
		is, was := after.Resource(k), before.Resource(k)
		if is == nil {
			f.Resources = append(f.Resources, peer.Resource{Type: k.Type, Name: k.Name, Gone: true})
			continue
		}
		if was != nil && was.Digest == is.Digest {
			continue
		}
		f.Resources = append(f.Resources, peer.Resource{Type: k.Type, Name: k.Name, Body: is.Body})
		wanted = append(wanted, x.fleet.Key(t, k.Name))
	}
	return f, wanted
}
