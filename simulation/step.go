package simulation

import (
	"fmt"
	"strings"
	"time"
)

// Step is one thing that the scheduler lets happen. Arg seeds the step's own
// choices, so a step means the same kind of thing in whatever state it is taken.
type Step struct {
	Op  Op
	Arg uint64
}

// Op is a kind of step.
type Op uint8

// The kinds of steps.
const (
	Mutate     Op = iota // an object comes, changes or goes
	Run                  // some of what can happen next does
	Settle               // one replica and its streams come to rest
	WatchFault           // a watch drops, a list is cut
	Health               // a kind becomes forbidden, failing, not served, or well again
	Compact              // old events can't be watched any more
	Crash                // a replica dies, or starts
	Connect              // an Envoy connects, or loses its connection
	Reboot               // an Envoy starts anew
	Wait                 // time passes
	Bookmark             // watches are told how far they have come
	Foreign              // an Envoy's versions become those of another cluster
	Flap                 // an object goes and comes back, which one replica sees before another
	ops
)

var opNames = [ops]string{"mutate", "run", "settle", "watchfault", "health", "compact", "crash", "connect", "reboot", "wait", "bookmark", "foreign", "flap"}

func (s Step) String() string { return fmt.Sprintf("%s:%x", opNames[s.Op], s.Arg) }

// Steps makes the steps of a seed. Each seed favours other kinds of steps, so
// that rare combinations become common in some.
func Steps(seed uint64, n int) []Step {
	r := randomOf(seed, 3)
	weights := []int{30, 60, 8, 5, 4, 1, 4, 8, 1, 6, 3, 1, 3}
	for i := range weights {
		weights[i] *= pick(r, []int{0, 1, 1, 2, 4})
	}
	weights[Run] = max(weights[Run], 30)
	weights[Mutate] = max(weights[Mutate], 15)
	steps := make([]Step, n)
	for i := range steps {
		steps[i] = Step{Op: Op(r.weighted(weights)), Arg: r.next() >> 32}
	}
	return steps
}

func (w *world) step(s Step) {
	r := randomOf(s.Arg, uint64(s.Op))
	w.logf("— %s", s)
	switch s.Op {
	case Mutate:
		w.gen.mutate(r)
	case Run:
		for range 1 + r.below(12) {
			if w.violation != nil || !w.progress(r) {
				break
			}
		}
	case Settle:
		w.settle(r)
	case WatchFault:
		w.watchFault(r)
	case Health:
		w.changeHealth(r)
	case Compact:
		w.api.compact = w.api.now - version(r.below(3))
	case Crash:
		w.crash(r)
	case Connect:
		w.toggle(r)
	case Reboot:
		w.reboot(r)
	case Wait:
		w.wait(r, pick(r, []time.Duration{300 * time.Millisecond, 2 * time.Second, 16 * time.Second, 61 * time.Second}))
	case Bookmark:
		w.bookmarks(r)
	case Foreign:
		w.estrange(r)
	case Flap:
		w.flap(r)
	}
	w.check()
}

// noSteps is the trace of a world that breaks without any.
const noSteps = "none"

// Trace writes steps in the form that ParseTrace reads.
func Trace(steps []Step) string {
	if len(steps) == 0 {
		return noSteps
	}
	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = s.String()
	}
	return strings.Join(words, " ")
}

// ParseTrace reads steps.
func ParseTrace(s string) ([]Step, error) {
	if s == noSteps {
		return nil, nil
	}
	var out []Step
	for _, word := range strings.Fields(s) {
		name, arg, _ := strings.Cut(word, ":")
		step := Step{Op: ops}
		for i, n := range opNames {
			if n == name {
				step.Op = Op(i)
			}
		}
		if _, err := fmt.Sscanf(arg, "%x", &step.Arg); err != nil || step.Op == ops {
			return nil, fmt.Errorf("step %q: want name:hex", word)
		}
		out = append(out, step)
	}
	return out, nil
}
