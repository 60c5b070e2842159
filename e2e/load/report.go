package load

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

// keptFailures is how many failures of each outcome are kept word for word.
const keptFailures = 5

// Report is the sum of a Run.
type Report struct {
	Requests, Failed int64
	Outcomes         map[string]int64
	Failures         []Failure // the first ones of each outcome
	P50, P99, Max    time.Duration
}

// Failure is a request that was not answered as it must be.
type Failure struct {
	At     time.Time
	Target Target
	Reused bool // on a kept connection
	Took   time.Duration
	Reason string // the outcome
	Detail string // word for word
}

// String gives all of it on a few lines.
func (f Failure) String() string {
	scheme, kind := "http", "fresh"
	if f.Target.TLS {
		scheme = "https"
	}
	if f.Reused {
		kind = "kept"
	}
	return fmt.Sprintf("%s %s://%s%s on a %s connection: %s after %v\n\t%s", f.At.Format("15:04:05.000"), scheme, f.Target.Host, f.Target.Path,
		kind, f.Reason, f.Took.Round(time.Microsecond), strings.ReplaceAll(strings.TrimSpace(f.Detail), "\n", "\n\t"))
}

// String gives the figures, and the failures below them.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests, %d failed, p50 %v, p99 %v, max %v;", r.Requests, r.Failed, r.P50, r.P99, r.Max)
	for _, k := range slices.Sorted(maps.Keys(r.Outcomes)) {
		fmt.Fprintf(&b, " %s: %d", k, r.Outcomes[k])
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\n%v", f)
	}
	return b.String()
}

// tally is a Run's figures in the making. Latencies are counted in steps of
// 5 %, so that a long run takes no more memory than a short one.
type tally struct {
	mu       sync.Mutex
	requests int64
	failed   int64
	outcomes map[string]int64
	failures []Failure
	steps    [512]int64
	max      time.Duration
}

const step = 1.05

func (t *tally) add(began time.Time, target *Target, o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests++
	t.outcomes[o.name]++
	t.max = max(t.max, o.took)
	us := max(1, float64(o.took.Microseconds()))
	t.steps[min(len(t.steps)-1, int(math.Log(us)/math.Log(step)))]++
	if o.name == target.wanted() {
		return
	}
	t.failed++
	if t.outcomes[o.name] <= keptFailures {
		t.failures = append(t.failures, Failure{At: began, Target: *target, Reused: o.reused, Took: o.took, Reason: o.name, Detail: o.detail})
	}
}

func (t *tally) report() Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Report{
		Requests: t.requests, Failed: t.failed, Outcomes: maps.Clone(t.outcomes), Failures: slices.Clone(t.failures),
		P50: t.quantile(0.5), P99: t.quantile(0.99), Max: t.max.Round(time.Microsecond),
	}
}

func (t *tally) quantile(q float64) time.Duration {
	left := int64(q * float64(t.requests))
	for i, n := range t.steps {
		if left -= n; left < 0 {
			return (time.Duration(math.Pow(step, float64(i+1))) * time.Microsecond).Round(time.Microsecond)
		}
	}
	return t.max
}
