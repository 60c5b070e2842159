// Tracecost measures what traces cost: it starts four holdfasts on one synthetic
// API server, each with a client of its own and another setting of OpenTelemetry,
// makes edits at a steady rate, and compares the CPU time that they use for the
// very same changes at the very same time.
//
//	edits ──▶ API server ──▶ holdfast disabled  OTEL_SDK_DISABLED=true
//	                     ├─▶ holdfast off       OTEL_TRACES_SAMPLER=always_off
//	                     ├─▶ holdfast ring      every change traced, kept for the page
//	                     └─▶ holdfast export    every change traced, kept and exported
//
// It prints a table, and fails when a figure is above its limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/apiserver"
	"github.com/holdfast-xds/holdfast/benchmarks/client"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/proc"
)

type config struct {
	holdfast     string
	hosts, rate  int
	rounds       int
	round        time.Duration
	limit, quiet float64 // in percent
}

func main() {
	var c config
	flag.StringVar(&c.holdfast, "holdfast", filepath.Join("bin", "holdfast"), "the holdfast `binary`")
	flag.IntVar(&c.hosts, "hosts", 3407, "how many hosts")
	flag.IntVar(&c.rate, "rate", 100, "edits per second, of routes and endpoints in turn")
	flag.IntVar(&c.rounds, "rounds", 9, "how many rounds; the figures are their medians")
	flag.DurationVar(&c.round, "round", 5*time.Second, "how long a round lasts")
	flag.Float64Var(&c.limit, "limit", 5, "most `percent` of CPU that full sampling with export may cost")
	flag.Float64Var(&c.quiet, "quiet", 2, "most `percent` that may be seen when it is off: the noise of the measurement")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tracecost:", err)
		os.Exit(1)
	}
}

// subject is one holdfast.
type subject struct {
	name   string
	env    map[string]string
	server *holdfast.Server
	client *client.Client
	cost   []time.Duration // per edit, by round
}

func run(ctx context.Context, c config) (err error) {
	folder, err := os.MkdirTemp("", "holdfast-tracecost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	work := workload.New(c.hosts, workload.Anywhere())
	api, err := apiserver.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, api.Close()) }()
	if err := api.Load(work); err != nil {
		return err
	}
	collector, err := startCollector()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, collector.stop()) }()
	subjects := []*subject{
		{name: "disabled", env: map[string]string{"OTEL_SDK_DISABLED": "true"}},
		{name: "off", env: map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}},
		{name: "ring", env: nil},
		{name: "export", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + collector.address, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}},
	}
	group, fleet := proc.NewGroup(folder), client.NewFleet(ctx)
	defer func() { fleet.Close(); err = errors.Join(err, group.Close()) }()
	for _, s := range subjects {
		if err := s.start(ctx, c, group, fleet, folder, api.Kubeconfig()); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for i := range c.rounds + 1 { // the first one warms up
		if err := round(ctx, c, i == 0, api, work, subjects); err != nil {
			return err
		}
	}
	return report(c, subjects, collector)
}

// start starts a holdfast, which inherits our environment, and connects a client.
func (s *subject) start(ctx context.Context, c config, g *proc.Group, fleet *client.Fleet, folder string, kubeconfig []byte) error {
	for k, v := range s.env {
		if err := os.Setenv(k, v); err != nil {
			return err
		}
		defer os.Unsetenv(k)
	}
	file := filepath.Join(folder, s.name+".kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return err
	}
	ports, err := proc.FreePorts(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 4)
	if err != nil {
		return err
	}
	s.server = holdfast.Prepare(g, holdfast.Config{
		Binary: c.holdfast, Name: "holdfast-" + s.name, Source: []string{"--source=kube", "--kubeconfig=" + file},
		XDS: ports[0], Admin: ports[1], HTTP: ports[2], HTTPS: ports[3],
	})
	if err := s.server.Start(); err != nil {
		return err
	}
	if s.client, err = fleet.NewClient(s.name, ports[0].String(), false); err != nil {
		return err
	}
	if err := s.client.Connect(ctx); err != nil {
		return err
	}
	return s.settle(ctx)
}

// settle waits until the client was sent nothing for a while.
func (s *subject) settle(ctx context.Context) error {
	last, since := s.client.Totals(), time.Now()
	return proc.Until(ctx, s.name+" settled", 3*time.Minute, func(context.Context) error {
		if now := s.client.Totals(); now != last || now.Resources < 100 {
			last, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < 2*time.Second {
			return fmt.Errorf("quiet for %v only", quiet)
		}
		return nil
	})
}

// round makes the edits of one round, and notes what each holdfast used for them.
func round(ctx context.Context, c config, warm bool, api *apiserver.Server, work *workload.Workload, subjects []*subject) error {
	before := make([]time.Duration, len(subjects))
	for i, s := range subjects {
		var err error
		if before[i], err = cpu(s.server.PID()); err != nil {
			return err
		}
	}
	n := 0
	t := time.NewTicker(time.Second / time.Duration(c.rate))
	defer t.Stop()
	for end := time.Now().Add(c.round); time.Now().Before(end) && ctx.Err() == nil; n++ {
		<-t.C
		_, changes := work.Next([]workload.Edit{workload.Route, workload.Endpoint}[n%2])
		if _, err := api.Write(changes); err != nil {
			return err
		}
	}
	for i, s := range subjects {
		now, err := cpu(s.server.PID())
		if err != nil {
			return err
		}
		if !warm {
			s.cost = append(s.cost, (now-before[i])/time.Duration(n))
		}
	}
	return ctx.Err()
}

func report(c config, subjects []*subject, collector *collector) error {
	fmt.Printf("\n%d hosts, %d edits a second, %d rounds of %v, one client each\n\n", c.hosts, c.rate, c.rounds, c.round)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tCPU per edit\tagainst disabled\trounds\t")
	var errs []error
	base := subjects[0]
	for _, s := range subjects {
		percent, low, high := against(s, base)
		fmt.Fprintf(w, "%s\t%v\t%+.1f %%\t%+.1f … %+.1f %%\t\n", s.name, median(s.cost).Round(100*time.Nanosecond), percent, low, high)
		limit := c.limit
		if s.name == "off" {
			limit = c.quiet
		}
		if percent > limit {
			errs = append(errs, fmt.Errorf("%s costs %.1f %%, and may cost %.1f %%", s.name, percent, limit))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("\n%d spans were exported\n", collector.spans.Load())
	if collector.spans.Load() == 0 {
		errs = append(errs, errors.New("nothing was exported: the figure means nothing"))
	}
	return errors.Join(errs...)
}

// against gives the median over the rounds of how much more was used, and the
// middle half of them.
func against(s, base *subject) (mid, low, high float64) {
	var p []float64
	for i := range s.cost {
		p = append(p, 100*(float64(s.cost[i])/float64(base.cost[i])-1))
	}
	slices.Sort(p)
	return p[len(p)/2], p[len(p)/4], p[len(p)*3/4]
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}
