package simulation

import (
	"fmt"
	"runtime/debug"

	"github.com/holdfast-xds/holdfast/index"
)

// Runner runs worlds one after the other; it is not safe for concurrent use.
type Runner struct {
	// Rules are those of a seed's world.
	Rules func(seed uint64) index.Rules
	// Log is told all that happens; nil for nothing.
	Log    func(string)
	parser *parser
}

// Run takes a seed's world through the steps and to rest, and gives the first
// broken promise, or nil.
func (x *Runner) Run(seed uint64, steps []Step) (v *Violation) {
	if x.parser == nil {
		x.parser = newParser()
	}
	at := -1
	defer func() {
		if p := recover(); p != nil {
			v = &Violation{Rule: "panic", Detail: fmt.Sprintf("%v\n%s", p, debug.Stack())}
		}
		if v != nil {
			v.Step = at
		}
	}()
	w := newWorld(seed, x.Rules(seed), x.parser, x.Log)
	for i, s := range steps {
		if w.violation != nil {
			return w.violation
		}
		at = i
		w.step(s)
	}
	at = len(steps)
	if w.violation == nil {
		w.quiet()
	}
	return w.violation
}

// Minimize takes steps away for as long as the same promise is still broken.
func (x *Runner) Minimize(seed uint64, steps []Step, v *Violation, budget int) ([]Step, *Violation) {
	log := x.Log
	x.Log = nil
	defer func() { x.Log = log }()
	if v.Step < len(steps) {
		steps = steps[:v.Step+1]
	}
	for size := max(len(steps)/2, 1); ; size /= 2 {
		for lo := 0; lo < len(steps) && budget > 0; {
			hi := min(lo+size, len(steps))
			fewer := append(append([]Step(nil), steps[:lo]...), steps[hi:]...)
			budget--
			if w := x.Run(seed, fewer); w != nil && w.Rule == v.Rule {
				steps, v = fewer, w
				continue
			}
			lo = hi
		}
		if size <= 1 || budget <= 0 {
			return steps, v
		}
	}
}
