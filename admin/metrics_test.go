package admin_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
)

func (w *world) metrics(t *testing.T) string {
	t.Helper()
	status, body := w.get(t, "/metrics")
	if status != 200 {
		t.Fatalf("%d\n%s", status, body)
	}
	return body
}

// own gives our metrics, without the help texts and the runtime's.
func own(body string) string {
	var out []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "holdfast_") && !strings.HasSuffix(line, " 0\n") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestMetrics(t *testing.T) {
	w := newWorld(t)
	w.started()
	w.streams = []delta.StreamStatus{envoy(1, "edge-1", "old", "older"), envoy(2, "edge-2", "old")}
	const want = `holdfast_build_info{version="v1"} 1
holdfast_envoys 2
holdfast_held{type="Cluster"} 2
holdfast_index_revision 2
holdfast_kind_complete{kind="Service"} 1
holdfast_kind_frontier{kind="Service"} 7
holdfast_kind_objects{kind="Service"} 2
holdfast_kind_state{kind="HTTPProxy",state="forbidden"} 1
holdfast_kind_state{kind="Service",state="observed"} 1
holdfast_problems{severity="error"} 1
holdfast_resources{type="Cluster"} 2
holdfast_withheld{action="remove",kind="HTTPProxy",reason="HTTPProxy is not complete",type="Cluster"} 3
`
	got := regexp.MustCompile(`(?m)^holdfast_withheld_oldest_seconds.*\n`).ReplaceAllString(own(w.metrics(t)), "")
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// The oldest of what is withheld alike, and the Envoy that owes an answer longest.
func TestMetricsOfTime(t *testing.T) {
	w := newWorld(t)
	frozen := envoy(1, "edge-1", "old")
	frozen.Types[0].InFlight, frozen.Types[0].InFlightSince, frozen.Types[0].Pending = 2, w.now.Add(-90*time.Second), 5
	frozen.Types[0].Withheld[0].Since = w.now.Add(-300 * time.Second)
	later := envoy(2, "edge-2", "old")
	later.Types[0].Withheld[0].Since = w.now.Add(-10 * time.Second)
	w.streams = []delta.StreamStatus{frozen, later}
	body := w.metrics(t)
	for _, want := range []string{
		`holdfast_withheld_oldest_seconds{action="remove",kind="HTTPProxy",reason="HTTPProxy is not complete",type="Cluster"} 300`,
		`holdfast_envoy_lag_seconds{node="edge-1"} 90`,
		`holdfast_envoy_lag_seconds{node="edge-2"} 0`,
		`holdfast_envoy_pending{node="edge-1"} 5`,
	} {
		if !strings.Contains(body, want+"\n") {
			t.Errorf("no %s in\n%s", want, own(body))
		}
	}
}

// Invariant: the number of series does not grow with the number of Envoys, and the
// worst Envoy is seen all the same.
func TestMetricsOfManyEnvoysAreBounded(t *testing.T) {
	w := newWorld(t)
	for i := range 500 {
		w.streams = append(w.streams, envoy(uint64(i), fmt.Sprintf("edge-%d", i)))
	}
	last := &w.streams[499].Types[0]
	last.InFlightSince = w.now.Add(-time.Hour)
	body := w.metrics(t)
	if n := strings.Count(body, "holdfast_envoy_lag_seconds{"); n > 101 {
		t.Errorf("%d series", n)
	}
	if !strings.Contains(body, `holdfast_envoy_lag_seconds{node="(others)"} 3600`) {
		t.Errorf("the frozen Envoy is not seen:\n%s", own(body))
	}
}

// docs/operating.md names every metric that is shown. That it names no other is
// tracing's TestMetricsAreDocumented.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.started()
	w.streams = []delta.StreamStatus{envoy(1, "edge-1", "old")}
	names := regexp.MustCompile(`(?m)^# TYPE (holdfast_[a-z_]+) `).FindAllStringSubmatch(w.metrics(t), -1)
	if len(names) < 15 {
		t.Fatalf("only %d metrics", len(names))
	}
	for _, m := range names {
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("docs/operating.md lacks %s", m[1])
		}
	}
}
