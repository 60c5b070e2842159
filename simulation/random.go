package simulation

// random is a small seeded generator (splitmix64). It is a value that can be
// made from any number, so that each step has one of its own and taking a step
// away from a trace leaves the others as they were.
type random struct{ state uint64 }

func randomOf(parts ...uint64) *random {
	r := &random{state: 0x9e3779b97f4a7c15}
	for _, p := range parts {
		r.state ^= p
		r.next()
	}
	return r
}

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// below gives a number in [0, n).
func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

// oneIn is true once in n times.
func (r *random) oneIn(n int) bool { return r.below(n) == 0 }

func (r *random) percent(p int) bool { return r.below(100) < p }

func pick[T any](r *random, list []T) T { return list[r.below(len(list))] }

// weighted picks an index by weight.
func (r *random) weighted(weights []int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := r.below(sum)
	for i, w := range weights {
		if n < w {
			return i
		}
		n -= w
	}
	panic("simulation: weights sum to nothing")
}
