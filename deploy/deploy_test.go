// Package deploy_test checks what is here for others' tools, with these tools.
package deploy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	alertsFile    = "prometheus/alerts.yaml"
	alertsTest    = "prometheus/alerts_test.yaml"
	dashboardFile = "grafana/holdfast.json"
)

// Each alert is shown to fire, and not to fire; promtool comes with Debian's
// package prometheus.
func TestAlertsByPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not there: on Debian, apt-get install prometheus; make check-alerts does")
	}
	run(t, promtool, "check", "rules", filepath.Base(alertsFile))
	run(t, promtool, "test", "rules", filepath.Base(alertsTest))
}

// A test that is taken out fails here, an alert that is changed fails there.
func TestEachAlertHasATest(t *testing.T) {
	tests := read(t, alertsTest)
	alerts := alertNames(t)
	if len(alerts) < 10 {
		t.Fatalf("only %d alerts", len(alerts))
	}
	for _, name := range alerts {
		if !strings.Contains(tests, `ALERTS{alertname="`+name+`",alertstate="firing"}`) {
			t.Errorf("%s: alert %s is not tested", alertsTest, name)
		}
		if !strings.Contains(read(t, "../docs/operating.md"), "`"+name+"`") {
			t.Errorf("docs/operating.md does not say what to do at %s", name)
		}
	}
}

// The dashboard and the alerts ask for metrics that there are.
func TestMetricsExist(t *testing.T) {
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("`(holdfast_[a-z_]+)`").FindAllStringSubmatch(read(t, "../docs/operating.md"), -1) {
		documented[name[1]] = true
	}
	used := regexp.MustCompile(`\bholdfast_[a-z_]+`)
	for _, file := range []string{alertsFile, dashboardFile} {
		names := used.FindAllString(read(t, file), -1)
		if len(names) < 10 {
			t.Errorf("%s names only %d metrics", file, len(names))
		}
		for _, name := range names {
			whole := strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_seconds_count")
			if !documented[name] && !documented[whole] && !documented[whole+"_seconds"] {
				t.Errorf("%s: %s is not in docs/operating.md", file, name)
			}
		}
	}
}

// The dashboard is one that Grafana can read: every panel has a query and a place of
// its own.
func TestDashboard(t *testing.T) {
	var d struct {
		UID    string `json:"uid"`
		Panels []struct {
			ID      int    `json:"id"`
			Type    string `json:"type"`
			Title   string `json:"title"`
			GridPos struct{ X, Y, W, H int }
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("panel %q: id %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q has no query", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
	}
	if d.UID == "" || len(d.Panels) < 10 {
		t.Errorf("uid %q, %d panels", d.UID, len(d.Panels))
	}
}

// Queries are PromQL: promtool reads them as rules.
func TestDashboardQueries(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not there: on Debian, apt-get install prometheus")
	}
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for _, m := range regexp.MustCompile(`"expr": ("(?:[^"\\]|\\.)*")`).FindAllStringSubmatch(read(t, dashboardFile), -1) {
		var expr string
		if err := json.Unmarshal([]byte(m[1]), &expr); err != nil {
			t.Fatal(err)
		}
		expr = strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$job", "holdfast").Replace(expr)
		rules = append(rules, rule{"x:" + string(rune('a'+len(rules)%26)), expr})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, promtool, "check", "rules", "--lint=none", file)
}

func alertNames(t *testing.T) []string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert string `json:"alert"`
			} `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, alertsFile)), &file); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			out = append(out, r.Alert)
		}
	}
	return out
}

func run(t *testing.T, promtool string, args ...string) {
	t.Helper()
	cmd := exec.Command(promtool, args...)
	cmd.Dir = "prometheus"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
