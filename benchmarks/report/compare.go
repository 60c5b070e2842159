package report

import (
	"fmt"
	"slices"
)

// Tolerance is how much a portable figure may grow before the gate closes.
const Tolerance = 0.10

// Growth gives the portable figures that are more than Tolerance above the
// baseline, and the rows of the baseline that this run lacks. Figures below ten
// may grow by one: of 3 derivations, 10 % is no whole one.
func (r *Run) Growth(baseline *Run) []string {
	var out []string
	for i := range baseline.Rows {
		was := &baseline.Rows[i]
		at := slices.IndexFunc(r.Rows, func(x Row) bool { return x.key() == was.key() })
		if at < 0 {
			out = append(out, fmt.Sprintf("%s: in the baseline, but was not measured", was.key()))
			continue
		}
		for _, m := range Portable {
			old, ok := was.Figures[m]
			now := r.Rows[at].Figures[m]
			if ok && now > old*(1+Tolerance) && !(old >= 1 && old < 10 && now < old+1) {
				out = append(out, fmt.Sprintf("%s: %s is %s, was %s", was.key(), m, Number(now), Number(old)))
			}
		}
	}
	return out
}
