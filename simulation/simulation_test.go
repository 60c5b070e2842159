package simulation_test

import (
	"flag"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/simulation"
	"github.com/holdfast-xds/holdfast/translate"
)

// The settings come as flags, or from the environment, as make passes them.
var (
	first = flag.Uint64("seed", number("SEED", 1), "first seed ($SEED)")
	count = flag.Uint64("seeds", number("SEEDS", defaultSeeds()), "number of seeds ($SEEDS)")
	most  = flag.Duration("for", duration("FOR"), "stop after this time ($FOR); then as many seeds as fit in")
	trace = flag.String("trace", os.Getenv("TRACE"), "steps to replay on the first seed, as a failure prints them ($TRACE)")
	brief = flag.Bool("brief", false, "do not minimize a failure")
	all   = flag.Bool("all", false, "go on after a failure; implies -brief")
)

func defaultSeeds() uint64 {
	if os.Getenv("FOR") != "" {
		return math.MaxUint32
	}
	return 2000
}

func number(name string, otherwise uint64) uint64 {
	if v, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return v
	}
	return otherwise
}

func duration(name string) time.Duration {
	d, _ := time.ParseDuration(os.Getenv(name)) // nothing, or not a duration: no limit
	return d
}

// TestMain: worlds are small and short-lived, so collecting them is a good part of
// the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// stepsPerSeed of a run.
const stepsPerSeed = 100

// newRunner makes worlds of which every fourth settles conflicts about a host in
// the other way.
func newRunner() *simulation.Runner {
	oldest := translate.New(translate.Options{FQDNConflict: translate.KeepOldest})
	none := translate.New(translate.Options{FQDNConflict: translate.RejectAll})
	return &simulation.Runner{Rules: func(seed uint64) index.Rules {
		if seed%4 == 0 {
			return none
		}
		return oldest
	}}
}

// TestSimulation runs the seeds, one after the other.
//
// HF-03, HF-05: control planes that restart or lag, Envoys that reconnect to
// another one, and routes that must never use a cluster that is not there.
func TestSimulation(t *testing.T) {
	if *trace != "" {
		replay(t)
		return
	}
	x, start := newRunner(), time.Now()
	n := uint64(0)
	for ; n < *count && (*most == 0 || time.Since(start) < *most) && (*all || !t.Failed()); n++ {
		seed := *first + n
		steps := simulation.Steps(seed, stepsPerSeed)
		if v := x.Run(seed, steps); v != nil {
			report(t, x, seed, steps, v)
		}
		if n%10_000 == 9_999 {
			t.Logf("%d seeds in %s", n+1, time.Since(start).Round(time.Second))
		}
	}
	t.Logf("%d seeds from %d on in %s", n, *first, time.Since(start).Round(time.Millisecond))
}

func report(t *testing.T, x *simulation.Runner, seed uint64, steps []simulation.Step, v *simulation.Violation) {
	t.Errorf("seed %d, step %d of %d: %s", seed, v.Step, len(steps), v)
	if *brief || *all {
		return
	}
	fewer, v := x.Minimize(seed, steps, v, patience)
	x.Log = func(s string) { t.Log(s) }
	x.Run(seed, fewer)
	t.Errorf("with %d steps: %s\nreplay: make simulate SEED=%d TRACE='%s'", len(fewer), v, seed, simulation.Trace(fewer))
}

// patience is how many worlds are tried to make a failure small.
const patience = 400

func replay(t *testing.T) {
	steps, err := simulation.ParseTrace(*trace)
	if err != nil {
		t.Fatal(err)
	}
	x := newRunner()
	x.Log = func(s string) { t.Log(s) }
	if v := x.Run(*first, steps); v != nil {
		t.Errorf("seed %d, step %d of %d: %s", *first, v.Step, len(steps), v)
	}
}
