package simulation_test

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/simulation"
	"github.com/holdfast-xds/holdfast/translate"
)

var (
	first = flag.Uint64("seed", fromEnv("SEED", 1), "first seed (default $SEED)")
	count = flag.Uint64("seeds", fromEnv("SEEDS", 2000), "number of seeds (default $SEEDS)")
	trace = flag.String("trace", os.Getenv("TRACE"), "steps to replay on the first seed, as a failure prints them (default $TRACE)")
	brief = flag.Bool("brief", false, "do not minimize a failure")
	most  = flag.Duration("for", 0, "stop after this time")
)

// TestMain: worlds are small and short-lived, so collecting them is a good part of
// the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// stepsPerSeed of a run.
const stepsPerSeed = 100

func fromEnv(name string, otherwise uint64) uint64 {
	if v, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return v
	}
	return otherwise
}

func newRunner() *simulation.Runner {
	return &simulation.Runner{Rules: translate.New(translate.Options{})}
}

// HF-03, HF-05: control planes that restart or lag, Envoys that reconnect to
// another one, and routes that must never use a cluster that is not there.
func TestSimulation(t *testing.T) {
	if *trace != "" {
		replay(t)
		return
	}
	x, start := newRunner(), time.Now()
	n := uint64(0)
	for ; n < *count; n++ {
		if *most > 0 && time.Since(start) > *most {
			break
		}
		seed := *first + n
		steps := simulation.Steps(seed, stepsPerSeed)
		if v := x.Run(seed, steps); v != nil {
			report(t, x, seed, steps, v)
			if t.Failed() && os.Getenv("KEEP_GOING") == "" {
				break
			}
		}
	}
	t.Logf("seeds %d to %d: %s", *first, *first+n-1, time.Since(start).Round(time.Millisecond))
}

func report(t *testing.T, x *simulation.Runner, seed uint64, steps []simulation.Step, v *simulation.Violation) {
	t.Errorf("seed %d, step %d of %d: %s", seed, v.Step, len(steps), v)
	if *brief || os.Getenv("KEEP_GOING") != "" {
		return
	}
	fewer, v := x.Minimize(seed, steps, v, 400)
	x.Log = func(s string) { t.Log(s) }
	x.Run(seed, fewer)
	t.Errorf("with %d steps: %s\nreplay: make simulate SEED=%d TRACE='%s'", len(fewer), v, seed, simulation.Trace(fewer))
}

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
