package admin_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

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
	const want = `holdfast_acks_total{type="Cluster"} 4
holdfast_build_info{version="v1"} 1
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
holdfast_responses_total{type="Cluster"} 4
holdfast_sent_bytes_total{type="Cluster"} 200
holdfast_sent_resources_total{type="Cluster"} 6
holdfast_withheld{action="remove",kind="HTTPProxy",type="Cluster"} 3
`
	if got := own(w.metrics(t)); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A counter must not go down when an Envoy leaves.
func TestCountersOutliveTheirStreams(t *testing.T) {
	w := newWorld(t)
	const two, four = `holdfast_responses_total{type="Cluster"} 2`, `holdfast_responses_total{type="Cluster"} 4`
	w.streams = []delta.StreamStatus{envoy(1, "edge-1")}
	if body := w.metrics(t); !strings.Contains(body, two) {
		t.Errorf("with one Envoy:\n%s", own(body))
	}
	w.streams = nil
	for range 2 {
		if body := w.metrics(t); !strings.Contains(body, two) {
			t.Errorf("after it left:\n%s", own(body))
		}
	}
	w.streams = []delta.StreamStatus{envoy(2, "edge-1")}
	if body := w.metrics(t); !strings.Contains(body, four) {
		t.Errorf("after it came back:\n%s", own(body))
	}
}

// docs/operating.md names every metric of ours, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`(holdfast_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		documented[m[1]] = true
	}
	w := newWorld(t)
	w.started()
	w.streams = []delta.StreamStatus{envoy(1, "edge-1", "old")}
	names := regexp.MustCompile(`(?m)^# TYPE (holdfast_[a-z_]+) `).FindAllStringSubmatch(w.metrics(t), -1)
	if len(names) < 15 {
		t.Fatalf("only %d metrics", len(names))
	}
	for _, m := range names {
		if !documented[m[1]] {
			t.Errorf("docs/operating.md lacks %s", m[1])
		}
		delete(documented, m[1])
	}
	for name := range documented {
		t.Errorf("docs/operating.md names %s, which is not there", name)
	}
}
