package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// HF-04: with Secrets forbidden a person finds the cause from the page, from
// `holdfast status`, from /readyz and from a metric, each within one look; and what
// to do where there is room to say it.
func TestClusterForbiddenIsSeenAtOnce(t *testing.T) {
	w, restore := behindGate(t)
	defer restore()
	if err := w.cluster.AllowReading(t.Context(), "secrets"); err != nil {
		t.Fatal(err)
	}
	if err := w.Holdfast.Start(); err != nil {
		t.Fatal(err)
	}
	w.told(t, "Secret", "forbidden")
	w.settle(t, "Secret")
	const cause, action = "secrets is forbidden", "list and watch on secrets"

	t.Run("status", func(t *testing.T) {
		out := w.command(t, "status")
		look := firstLines(out, 5)
		if !strings.Contains(look, "Secret is forbidden since") || !strings.Contains(look, cause) || !strings.Contains(look, action) {
			t.Errorf("the first lines are\n%s", look)
		}
	})
	t.Run("readyz", func(t *testing.T) {
		body := w.page(t, "/readyz")
		if !regexp.MustCompile(`(?m)^\[-\] kind Secret forbidden, not complete: .*`+cause).MatchString(body) || strings.Count(body, "\n") > 4 {
			t.Errorf("%s", body)
		}
	})
	t.Run("metric", func(t *testing.T) {
		body := w.page(t, "/metrics")
		for _, want := range []string{`holdfast_kind_complete{kind="Secret"} 0`, `holdfast_kind_state{kind="Secret",state="forbidden"} 1`, `holdfast_kind_complete{kind="Service"} 1`} {
			if !strings.Contains(body, want+"\n") {
				t.Errorf("there is no %s", want)
			}
		}
	})
	t.Run("page", func(t *testing.T) {
		body := w.page(t, "/")
		_, lead, _ := strings.Cut(body, `<ul class="findings">`)
		lead, _, _ = strings.Cut(lead, "</li>")
		if !strings.Contains(lead, "Secret is forbidden since") || !strings.Contains(lead, cause) || !strings.Contains(lead, action) {
			t.Errorf("on top the page says %q", lead)
		}
		if !regexp.MustCompile(`Secret</th><td><span class="chip error">forbidden</span>`).MatchString(body) {
			t.Error("the list of kinds does not show it")
		}
	})
	t.Run("explain", func(t *testing.T) {
		for i := range w.hosts {
			if h := &w.hosts[i]; h.TLS {
				if out := w.command(t, "explain", "vhost/"+h.FQDN); !strings.Contains(out, cause) {
					t.Errorf("explain %s does not say it:\n%s", h.FQDN, firstLines(out, 20))
				}
				return
			}
		}
	})
}

// command runs a command of holdfast's against the running one.
func (w *world) command(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), w.Holdfast.Config.Binary, append(args, "--admin-address="+w.Holdfast.Config.Admin.String())...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Errorf("holdfast %v: %v\n%s", args, err, errs.String())
	}
	return out.String()
}

func (w *world) page(t *testing.T, path string) string {
	t.Helper()
	body, err := w.ask(path)
	if err != nil {
		t.Error(err)
	}
	return body
}

func (w *world) ask(path string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + w.Holdfast.Config.Admin.String() + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", path, resp.Status, body)
	}
	return string(body), err
}

func firstLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[:min(len(lines), n)], "")
}

// holdfast diff finds an Envoy that has all to be the same as what holdfast knows
// of it.
func TestClusterDiffFindsNone(t *testing.T) {
	w := inCluster(t)
	out := w.command(t, "diff", "--envoy-admin="+w.Envoy.Admin.String())
	if !strings.Contains(out, "No difference.") {
		t.Errorf("%s", out)
	}
	for _, row := range []string{"Cluster", "ClusterLoadAssignment", "Listener", "Secret", "ScopedRouteConfiguration", "RouteConfiguration"} {
		// Secrets and routes of TLS hosts that earlier tests removed may drain yet.
		draining := "0"
		if row == "Secret" || row == "RouteConfiguration" {
			draining = "[0-9]+"
		}
		if !regexp.MustCompile(`(?m)^` + row + ` +[1-9][0-9]* +0 +0 +0 +0 +` + draining + `$`).MatchString(out) {
			t.Errorf("%s has not been compared:\n%s", row, out)
		}
	}
}
