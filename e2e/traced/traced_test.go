package traced_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/e2e/rig"
	"github.com/holdfast-xds/holdfast/e2e/traced"
)

// build is the holdfast under test. Set by TestMain, then only read.
var build string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if build = os.Getenv("HOLDFAST_TEST_BIN"); build != "" || os.Getenv("HOLDFAST_TEST_ENVOY") == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "holdfast-traced-bin-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "traced:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	build = filepath.Join(dir, "holdfast")
	if out, err := exec.Command("go", "build", "-o", build, "../../cmd/holdfast").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "traced: go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// need gives the path of a part, or skips the test.
func need(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" || testing.Short() {
		t.Skip(variable + " is not set (make test, or make jaeger-test, sets it), or -short was given")
	}
	return path
}

func newRig(t *testing.T) *rig.Rig {
	t.Helper()
	r, err := rig.New(rig.Options{
		Folder: t.TempDir(), Holdfast: build, Envoy: need(t, "HOLDFAST_TEST_ENVOY"),
		IP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Seed: 7,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of holdfast's log:\n%s", r.Holdfast.Tail(20))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// export has holdfast, which inherits our environment, export at once.
func export(t *testing.T, endpoint netip.AddrPort, protocol string) {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+endpoint.String())
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
}

// The trace of an edit that changes one route, with one Envoy.
const editTree = `watch_event HTTPProxy
  commit
    derive host/%s
    response RouteConfiguration
      ack
`

// One edited HTTPProxy is exactly one trace, with every step in it, whichever
// protocol brings it to the collector.
func TestOneEditIsOneTrace(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(strings.ReplaceAll(protocol, "/", "-"), func(t *testing.T) {
			r := newRig(t)
			receiver, err := traced.StartReceiver(t.Context(), r.Processes, need(t, "HOLDFAST_TEST_OTLP"), r.Folder)
			if err != nil {
				t.Fatal(err)
			}
			endpoint := receiver.GRPC
			if protocol != "grpc" {
				endpoint = receiver.HTTP
			}
			export(t, endpoint, protocol)
			w, err := traced.Start(t.Context(), r, 20)
			if err != nil {
				t.Fatal(err)
			}
			before := exported(t, receiver)
			host := w.Plain()
			if err := w.Edit(t.Context(), host, 17); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf(editTree, host.FQDN)
			if traces := after(t, receiver, before); len(traces) != 1 {
				t.Errorf("%d traces of one edit", len(traces))
			} else if got := traced.Tree(traces[0]); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

// exported gives the ids of the traces so far: the start-up, with the lists, and
// the connection of Envoy, each whole.
func exported(t *testing.T, r *traced.Receiver) map[string]bool {
	t.Helper()
	spans, err := r.Await(t.Context(), "the start-up was received", func(spans []traced.Span) error {
		for _, name := range []string{"start", "list", "connect", "ack"} {
			if !has(spans, name) {
				return errors.New("no " + name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	old := map[string]bool{}
	for _, s := range spans {
		old[s.Trace] = true
	}
	if len(old) != 2 {
		t.Errorf("%d traces of a start and a connection", len(old))
	}
	return old
}

// after gives the traces that are new, once one of them ends in an ACK.
func after(t *testing.T, r *traced.Receiver, old map[string]bool) map[int][]traced.Span {
	t.Helper()
	var fresh []traced.Span
	_, err := r.Await(t.Context(), "the edit's trace was received", func(spans []traced.Span) error {
		fresh = nil
		for _, s := range spans {
			if !old[s.Trace] {
				fresh = append(fresh, s)
			}
		}
		if !has(fresh, "ack") || !has(fresh, "watch_event") || !has(fresh, "response") {
			return fmt.Errorf("%d new spans", len(fresh))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	numbers, out := map[string]int{}, map[int][]traced.Span{}
	for _, s := range fresh {
		n, known := numbers[s.Trace]
		if !known {
			n = len(numbers)
			numbers[s.Trace] = n
		}
		out[n] = append(out[n], s)
	}
	return out
}

func has(spans []traced.Span, name string) bool {
	for _, s := range spans {
		if s.Name == name {
			return true
		}
	}
	return false
}

// A new host shows make before break: the scope waits for the cluster, which it
// says, and links back when it leaves.
func TestNewHostInJaeger(t *testing.T) {
	r := newRig(t)
	jaeger, err := traced.StartJaeger(t.Context(), r.Processes, need(t, "HOLDFAST_TEST_JAEGER"))
	if err != nil {
		t.Fatal(err)
	}
	export(t, jaeger.OTLP, "grpc")
	w, err := traced.Start(t.Context(), r, 20)
	if err != nil {
		t.Fatal(err)
	}
	host, err := w.Add(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spans, err := jaeger.Find(t.Context(), "holdfast.host", host.FQDN, func(spans []traced.Span) error {
		if n := strings.Count(traced.Tree(spans), "ack\n"); n < 4 {
			return fmt.Errorf("only %d types were acknowledged:\n%s", n, traced.Tree(spans))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	tree := traced.Tree(spans)
	for _, want := range []string{
		"watch_event\n  commit\n", "derive host/" + host.FQDN, "response Cluster\n", "response ClusterLoadAssignment\n",
		"withhold ScopedRouteConfiguration\n", "! withheld http/" + host.FQDN + " waits for Cluster", "! released http/" + host.FQDN, "response RouteConfiguration\n",
	} {
		if !strings.Contains(tree, want) {
			t.Errorf("no %q in\n%s", want, tree)
		}
	}
	for _, s := range spans {
		if strings.HasPrefix(s.Name, "response") && strings.Contains(strings.Join(s.Events, ""), "released") && len(s.Links) == 0 {
			t.Error("the release does not link to what withheld it")
		}
	}
	// An edit of it is found by the same name, and is the newest.
	if err := w.Edit(t.Context(), host, 23); err != nil {
		t.Fatal(err)
	}
	spans, err = jaeger.Find(t.Context(), "holdfast.host", host.FQDN, func(spans []traced.Span) error {
		if got, want := traced.Tree(spans), fmt.Sprintf(editTree, host.FQDN); got != want {
			return fmt.Errorf("got\n%swant\n%s", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("found:\n%s", traced.Tree(spans))
}
