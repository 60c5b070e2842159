package suite

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/e2e/backend"
	"github.com/holdfast-xds/holdfast/e2e/envoy"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// backends are the servers behind the hosts.
type backends struct {
	running []*backend.Backend
	list    []fixture.Backend
}

func startBackends(ip netip.Addr) (*backends, error) {
	b := &backends{}
	at := netip.AddrPortFrom(ip, 0)
	for _, name := range []string{"backend-a", "backend-b", "backend-c", "backend-d"} {
		x, err := backend.Start(name, at, at, at)
		if err != nil {
			return b, errors.Join(err, b.close())
		}
		b.running = append(b.running, x)
		b.list = append(b.list, fixture.Backend{Name: name, Addrs: x.Addrs()})
	}
	return b, nil
}

func (b *backends) close() error {
	var errs []error
	for _, x := range b.running {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// nodeEnvoy is the real Envoy's node id.
const nodeEnvoy = "envoy"

// real measures a real Envoy, under a light load that must see no failure: its
// start, each sort of edit up to the first request that is answered by it, churn,
// and a restart of holdfast.
func (r *rig) real(ctx context.Context) error {
	e, err := r.startEnvoy(ctx)
	if err != nil {
		return err
	}
	x := r.underLoad(ctx, e)
	defer x.load.Stop()
	for _, kind := range workload.Edits {
		if err := x.sort(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	if err := x.churn(ctx); err != nil {
		return fmt.Errorf("churn: %w", err)
	}
	if err := x.restart(ctx); err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return e.Stop()
}

// startEnvoy measures from the start of Envoy until it is ready, and what it has
// used until it is quiet.
func (r *rig) startEnvoy(ctx context.Context) (*envoy.Envoy, error) {
	ports, err := proc.FreePorts(loopback, 1)
	if err != nil {
		return nil, err
	}
	bootstrap, err := r.server.Bootstrap(ctx, nodeEnvoy, ports[0])
	if err != nil {
		return nil, err
	}
	e, err := envoy.Start(r.group, envoy.Config{Binary: r.Envoy, Bootstrap: bootstrap, Admin: ports[0], Folder: r.Folder})
	if err != nil {
		return nil, err
	}
	if err := poll(ctx, patience, func() error { return e.Ready(ctx) }); err != nil {
		return nil, err
	}
	ready := time.Since(e.Started)
	if err := r.settled(ctx); err != nil {
		return nil, err
	}
	all, main, err := envoyCPU(e)
	if err != nil {
		return nil, err
	}
	now, _, err := rested(ctx, e.PID())
	if err != nil {
		return nil, err
	}
	r.note("envoy", "start"+strings.Join(r.server.Config.Args, " "), 1, map[report.Metric]float64{
		report.Start: report.Milliseconds(ready), report.EnvoyCPU: report.Milliseconds(all), report.EnvoyMain: report.Milliseconds(main),
		report.EnvoyRSS: report.Megabytes(now),
	}, "until ready")
	return e, nil
}

func (r *rig) settled(ctx context.Context) error {
	_, err := r.server.Await(ctx, "Envoy is quiet", patience, func(s *holdfast.Status) error { return s.Quiet(nodeEnvoy) })
	return err
}

func envoyCPU(e *envoy.Envoy) (all, main time.Duration, err error) {
	if all, err = cpu(e.PID()); err != nil {
		return 0, 0, err
	}
	main, err = mainThread(e.PID())
	return all, main, err
}

// envoyRig is a rig with a real Envoy under load.
type envoyRig struct {
	*rig
	envoy       *envoy.Envoy
	scenario    string // of its rows
	clients     int
	load        *load.Run
	before      load.Report
	roots       *x509.CertPool
	http, https netip.AddrPort
}

func (r *rig) underLoad(ctx context.Context, e *envoy.Envoy) *envoyRig {
	x := &envoyRig{rig: r, envoy: e, scenario: "envoy", clients: 2, roots: x509.NewCertPool()}
	x.roots.AppendCertsFromPEM(r.work.CA())
	x.http, x.https = r.server.Config.HTTP, r.server.Config.HTTPS
	x.load = x.startLoad(ctx)
	return x
}

// loadRate is requests a second: enough to see a failure, too little to be in
// the way.
const loadRate = 200

// startLoad asks hosts whose backends no edit changes.
func (x *envoyRig) startLoad(ctx context.Context) *load.Run {
	c := load.Config{HTTP: x.http, HTTPS: x.https, Roots: x.roots, Seed: 1, Concurrency: 4, Rate: loadRate, FreshPercent: 20}
	for i := 200; i < workload.Smallest; i++ {
		h := x.work.Host(i)
		for _, p := range h.Probes {
			c.Targets = append(c.Targets, load.Target{Host: h.FQDN, Path: p.Path, Headers: p.Headers, Backend: p.Backend, TLS: h.TLS})
		}
	}
	return load.Start(ctx, c)
}

// requests adds the load's figures since the last call.
func (x *envoyRig) requests(figures map[report.Metric]float64) string {
	now := x.load.Report()
	figures[report.Requests] = float64(now.Requests - x.before.Requests)
	figures[report.Failed] = float64(now.Failed - x.before.Failed)
	note := ""
	if now.Failed > x.before.Failed && len(now.Failures) > 0 {
		note = now.Failures[len(now.Failures)-1].String()
	}
	x.before = now
	return note
}

// sort measures one sort of edit: from the write at the API server to the first
// request that shows it, and what Envoy's main thread and holdfast spend on it.
func (x *envoyRig) sort(ctx context.Context, e workload.Edit) error {
	if err := x.settled(ctx); err != nil {
		return err
	}
	m, err := startMeter(x.server.PID())
	if err != nil {
		return err
	}
	_, main, err := envoyCPU(x.envoy)
	if err != nil {
		return err
	}
	var served []time.Duration
	var writes []time.Time
	for range x.Repeat {
		at, took, ok, err := x.once(ctx, e)
		if err != nil {
			return err
		}
		writes = append(writes, at)
		if ok {
			served = append(served, took)
		}
	}
	if err := x.gracesPass(ctx); err != nil {
		return err
	}
	used, err := m.used()
	if err != nil {
		return err
	}
	_, after, err := envoyCPU(x.envoy)
	if err != nil {
		return err
	}
	n := float64(x.Repeat)
	figures := map[report.Metric]float64{
		report.CPU: report.Milliseconds(used) / n, report.EnvoyMain: report.Milliseconds(after-main) / n,
	}
	if len(served) > 0 {
		figures[report.Served50], figures[report.Served99] = report.Quantile(served, 0.5), report.Quantile(served, 0.99)
	}
	if err := x.whoseTime(ctx, e, writes, figures); err != nil {
		return err
	}
	note := x.requests(figures)
	x.note(x.scenario, string(e), x.clients, figures, note)
	return nil
}

// once makes an edit and asks until an answer shows it; ok is false when none can.
func (x *envoyRig) once(ctx context.Context, e workload.Edit) (at time.Time, took time.Duration, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if x.leader != nil {
		x.leader.Forget()
	}
	host, changes := x.work.Next(e)
	look, err := x.sight(e, &host, changes)
	if err != nil {
		return at, 0, false, err
	}
	at, err = x.origin.write(ctx, changes)
	if err != nil {
		return at, 0, false, err
	}
	keys := x.expected(changes)
	if look == nil {
		_, err := x.leader.Await(ctx, keys)
		return at, 0, false, err
	}
	defer look.close()
	for {
		seen, err := look.ask(ctx)
		if seen {
			return at, time.Since(at), true, nil
		}
		if ctx.Err() != nil {
			return at, 0, false, fmt.Errorf("host %s: %w: %w", host.FQDN, ctx.Err(), err)
		}
	}
}

func (x *envoyRig) gracesPass(ctx context.Context) error {
	if x.leader != nil {
		return x.silent(ctx, x.leader)
	}
	select {
	case <-time.After(silence):
		return x.settled(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tls measures one way of finding certificates: a TLS host that is added, and a
// certificate that is rotated, among hosts that all have one.
func (r *rig) tls(ctx context.Context, mode string) error {
	r.server.Config.Args = append(r.server.Config.Args, "--tls="+mode)
	if err := r.server.Start(); err != nil {
		return err
	}
	e, err := r.startEnvoy(ctx)
	if err != nil {
		return err
	}
	x := r.underLoad(ctx, e)
	defer x.load.Stop()
	x.scenario = "tls-" + mode
	for _, kind := range []workload.Edit{workload.TLSHost, workload.Certificate} {
		if err := x.sort(ctx, kind); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return e.Stop()
}

// churn is the rig's, seen by Envoy.
func (x *envoyRig) churn(ctx context.Context) error {
	all, main, err := envoyCPU(x.envoy)
	if err != nil {
		return err
	}
	if err := x.rig.churn(ctx); err != nil {
		return err
	}
	allNow, mainNow, err := envoyCPU(x.envoy)
	if err != nil {
		return err
	}
	const changes = float64(churnRate) * 10 // churnFor is 10 s
	figures := map[report.Metric]float64{
		report.EnvoyCPU: report.Milliseconds(allNow-all) / changes, report.EnvoyMain: report.Milliseconds(mainNow-main) / changes,
	}
	note := x.requests(figures)
	x.note("envoy", "churn", 2, figures, "each figure is for one change; the load's requests are in envoy_cpu_ms; "+note)
	return nil
}

// restart kills holdfast and starts it again.
func (x *envoyRig) restart(ctx context.Context) error {
	before, err := x.envoy.Holdings(ctx)
	if err != nil {
		return err
	}
	x.requests(map[report.Metric]float64{})
	all, main, err := envoyCPU(x.envoy)
	if err != nil {
		return err
	}
	if err := x.rig.restart(ctx, "unchanged-with-envoy", nothing, nothing); err != nil {
		return err
	}
	if err := x.settled(ctx); err != nil {
		return err
	}
	allNow, mainNow, err := envoyCPU(x.envoy)
	if err != nil {
		return err
	}
	st, err := x.server.Status(ctx)
	if err != nil {
		return err
	}
	figures := map[report.Metric]float64{report.EnvoyCPU: report.Milliseconds(allNow - all), report.EnvoyMain: report.Milliseconds(mainNow - main)}
	if s := st.Stream(nodeEnvoy); s != nil {
		for _, t := range s.Types {
			figures[report.Resources] += float64(t.Resources)
			figures[report.Removed] += float64(t.Removed)
			figures[report.Bytes] += float64(t.Bytes)
		}
	}
	note := x.requests(figures)
	after, err := x.envoy.Holdings(ctx)
	if err != nil {
		return err
	}
	for _, k := range envoy.Kinds {
		if lost := after.Lost(before, k); len(lost) > 0 {
			note += fmt.Sprintf("; %d %s lost", len(lost), k)
		}
	}
	x.note("envoy", "restart-unchanged", 2, figures, note)
	return nil
}

func nothing() error { return nil }
