package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/credentials/insecure"
)

// fakeEnvoy answers like an Envoy's admin interface: the given resources, as
// "type name version", are what it has.
func fakeEnvoy(t *testing.T, node string, has ...string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/server_info" {
			fmt.Fprintf(w, `{"node": {"id": %q}}`, node)
			return
		}
		var configs []map[string]any
		for _, x := range has {
			f := strings.Fields(x)
			if r.URL.Query().Get("resource") == f[0] {
				configs = append(configs, map[string]any{"name": f[1], "version_info": f[2], "cluster": map[string]any{"name": f[1]}})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"configs": configs})
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// diff tells what is missing, what is too much, and what differs; a version whose
// vector alone has moved on is the same.
func TestDiff(t *testing.T) {
	p := startServe(t, "--source=dir:"+shopFolder(t))
	envoy := connect(t, p.xds, insecure.NewCredentials())
	name := envoy.clusters()[0]
	admin := "--admin-address=" + strings.TrimPrefix(p.admin, "http://")
	var h struct {
		Types []struct{ Held map[string]string }
	}
	eventually(t, func() bool {
		if err := json.Unmarshal([]byte(p.get(t, "/holdings?node=edge-1")), &h); err != nil {
			t.Fatal(err)
		}
		return len(h.Types) > 0 && h.Types[0].Held[name] != ""
	})
	version := h.Types[0].Held[name]
	moved := version[:strings.LastIndex(version, ".")] + ".P:zz"
	for _, c := range []struct {
		name string
		has  []string
		code int
		says []string
	}{
		{"the same", []string{"dynamic_active_clusters " + name + " " + version}, exitOK, []string{"No difference."}},
		{"the same, made of newer objects", []string{"dynamic_active_clusters " + name + " " + moved}, exitOK, []string{"No difference."}},
		{"it warms", []string{"dynamic_warming_clusters " + name + " " + version}, exitOK, []string{"No difference."}},
		{"missing", nil, exitFailed, []string{"Cluster, missing in Envoy, though it acknowledged it:\n  " + name}},
		{"extra", []string{"dynamic_active_clusters " + name + " " + version, "dynamic_active_clusters x 1"}, exitFailed, []string{"Cluster, only in Envoy:\n  x"}},
		{"different", []string{"dynamic_active_clusters " + name + " h1.other.folder."}, exitFailed, []string{"Cluster, different:", "h1.other.folder.", version}},
	} {
		got := run(t.Context(), nil, "diff", admin, "--envoy-admin="+fakeEnvoy(t, "edge-1", c.has...))
		if got.code != c.code {
			t.Errorf("%s: exit code %d, %s", c.name, got.code, got.stderr)
		}
		for _, want := range c.says {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%s: lacks %q:\n%s", c.name, want, got.stdout)
			}
		}
	}
	p.stop(t, syscall.SIGTERM)
}

// What goes wrong is said in one line, with what to do next.
func TestQuestionsThatFail(t *testing.T) {
	p := startServe(t, "--source=dir:"+shopFolder(t))
	admin := strings.TrimPrefix(p.admin, "http://")
	for began := time.Now(); time.Since(began) < 10*time.Second; { // until the folder was read
		if resp, err := http.Get(p.admin + "/readyz?complete"); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		}
	}
	nobody := freeAddress(t)
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	stranger := strings.TrimPrefix(other.URL, "http://")
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"status --admin-address=" + nobody, exitFailed, "nothing listens on " + nobody},
		{"status --admin-address=" + stranger, exitFailed, "is it holdfast's --admin-address"},
		{"status -o yaml", exitUsage, `"yaml" is neither`},
		{"explain", exitUsage, "cluster/NAME"},
		{"explain a b", exitUsage, "cluster/NAME"},
		{"explain --admin-address=" + nobody + " x", exitFailed, "nothing listens"},
		{"explain --admin-address=" + admin + " vhost/card.test", exitFailed, "did you mean vhost/cart.test?"},
		{"explain --admin-address=" + admin + " zzzzzzzzzzzzzz", exitFailed, "ask for cluster/NAME"},
		{"diff", exitUsage, "--envoy-admin: give the address"},
		{"diff --envoy-admin=x", exitUsage, "--envoy-admin"},
		{"diff --admin-address=" + admin + " --envoy-admin=" + nobody, exitFailed, "an Envoy's admin address"},
		{"diff --admin-address=" + admin + " --envoy-admin=" + stranger, exitFailed, "is it an Envoy's admin address"},
		{"diff --admin-address=" + admin + " --envoy-admin=" + fakeEnvoy(t, "edge-9"), exitFailed, "no Envoy is connected"},
	} {
		got := run(t.Context(), nil, strings.Fields(c.args)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.says) || strings.Count(got.stderr, "\n") != 1 || got.stdout != "" {
			t.Errorf("holdfast %s: %d\n%s%s", c.args, got.code, got.stdout, got.stderr)
		}
	}
	p.stop(t, syscall.SIGTERM)
}
