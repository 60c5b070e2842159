package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-xds/holdfast/benchmarks/direct"
	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/suite"
)

// config is what the flags say.
type config struct {
	full, check, record bool
	source              string
	sizes               []int
	scenarios           []string
	repeat              int
	holdfast, results   string
	profiles, draw      string
	baseline            string
	backends            netip.Addr // where the hosts' endpoints listen
}

func parse(args []string) (*config, error) {
	c := &config{}
	f := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	f.SortFlags = false
	f.BoolVar(&c.full, "full", false, "the large sizes as well, and the real API server")
	f.BoolVar(&c.check, "check", false, "compare the machine-independent figures with the baseline")
	f.BoolVar(&c.record, "record", false, "with --check: write the baseline anew")
	f.StringVar(&c.source, "source", "", "only this source: synthetic, folder or kube (a real API server)")
	sizes := f.String("hosts", "", "numbers of hosts, separated by commas, instead of the mode's own")
	scenarios := f.String("scenarios", "", "only these, separated by commas: "+strings.Join(suite.Scenarios, ", ")+", direct")
	f.IntVar(&c.repeat, "repeat", 10, "how often each edit is made")
	f.StringVar(&c.holdfast, "holdfast", "bin/holdfast", "the binary to measure")
	f.StringVar(&c.results, "results", "benchmarks/results", "folder for JSON and plots")
	f.StringVar(&c.draw, "draw", "", "measure nothing: print and plot this recorded run")
	f.StringVar(&c.profiles, "profiles", "", "folder for CPU and heap profiles of holdfast; they cost it some time")
	f.StringVar(&c.baseline, "baseline", "benchmarks/results/baseline.json", "what --check compares with")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	var err error
	if c.sizes, err = numbers(*sizes); err != nil {
		return nil, fmt.Errorf("--hosts: %w", err)
	}
	if *scenarios != "" {
		c.scenarios = strings.Split(*scenarios, ",")
	}
	return c, nil
}

func numbers(list string) ([]int, error) {
	var out []int
	for s := range strings.SplitSeq(list, ",") {
		if s == "" {
			continue
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

func (c *config) mode() string {
	switch {
	case c.check:
		return "check"
	case c.full:
		return "full"
	}
	return "quick"
}

// wants reports whether a scenario is to be run.
func (c *config) wants(scenario string) bool {
	return len(c.scenarios) == 0 || slices.Contains(c.scenarios, scenario)
}

func (c *config) run(ctx context.Context) error {
	if c.draw != "" {
		return c.redraw()
	}
	began := time.Now()
	run := report.New(c.mode(), began)
	var err error
	if c.check {
		err = c.measureDirect(run, []int{300, 3407})
	} else {
		err = errors.Join(c.measureSuite(ctx, run), c.measureDirect(run, c.directSizes()))
	}
	run.Took = time.Since(began).Round(time.Second).String()
	if len(run.Rows) > 0 {
		err = errors.Join(err, run.Table(os.Stdout), run.Ratios(os.Stdout))
	}
	if c.check {
		return errors.Join(err, c.compare(run))
	}
	return errors.Join(err, run.SaveAll(c.results))
}

func (c *config) redraw() error {
	run, err := report.Read(c.draw)
	if err != nil {
		return err
	}
	return errors.Join(run.Table(os.Stdout), run.Ratios(os.Stdout), run.Plots(c.results))
}

func (c *config) directSizes() []int {
	switch {
	case len(c.sizes) > 0:
		return c.sizes
	case c.full:
		return []int{300, 3407, 10_000, 30_000, 100_000}
	}
	return []int{300, 3407, 10_000}
}

func (c *config) measureDirect(run *report.Run, sizes []int) error {
	if !c.wants("direct") {
		return nil
	}
	for _, hosts := range sizes {
		if err := direct.Measure(run, hosts, c.repeat); err != nil {
			return fmt.Errorf("direct, %d hosts: %w", hosts, err)
		}
	}
	return nil
}

func (c *config) measureSuite(ctx context.Context, run *report.Run) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return err
	}
	binary, err := filepath.Abs(c.holdfast)
	if err != nil {
		return err
	}
	s := suite.Config{
		Holdfast: binary, Envoy: os.Getenv("HOLDFAST_TEST_ENVOY"), Backends: c.backends, Kube: os.Getenv("HOLDFAST_TEST_K8S_BIN"), CRDs: "e2e/testdata/crds.yaml", Self: self, Folder: folder, Repeat: c.repeat, Profiles: c.profiles,
		Log: func(format string, args ...any) {
			fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
		},
	}
	if err := suite.Run(ctx, s, run, c.plan()); err != nil {
		return fmt.Errorf("%w (logs in %s)", err, folder)
	}
	return os.RemoveAll(folder)
}

func (c *config) plan() suite.Plan {
	p := suite.Quick
	if c.full {
		p = suite.Full
	}
	return p.Only(c.source, c.sizes, c.scenarios)
}

// compare is the gate.
func (c *config) compare(run *report.Run) error {
	if c.record {
		return run.Save(c.baseline)
	}
	baseline, err := report.Read(c.baseline)
	if err != nil {
		return fmt.Errorf("%w (bench --check --record writes it)", err)
	}
	if grown := run.Growth(baseline); len(grown) > 0 {
		return fmt.Errorf("more than %.0f %% above %s:\n  %s", report.Tolerance*100, c.baseline, strings.Join(grown, "\n  "))
	}
	fmt.Printf("\nNo machine-independent figure is more than %.0f %% above %s.\n", report.Tolerance*100, c.baseline)
	return nil
}
