package kube

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/proc"
)

func TestResourceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/services": "services", "/api/v1/namespaces/a/secrets": "secrets", "/api/v1/namespaces": "namespaces",
		"/apis/discovery.k8s.io/v1/endpointslices": "endpointslices", "/apis/projectcontour.io/v1/namespaces/a/httpproxies": "httpproxies",
		"/readyz": "", "/apis": "", "/api/v1": "",
	} {
		if got := resourceOf(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

func startCluster(t *testing.T) *Cluster {
	t.Helper()
	binaries := os.Getenv("HOLDFAST_TEST_K8S_BIN")
	if binaries == "" {
		t.Skip("HOLDFAST_TEST_K8S_BIN is not set: no API server to run (make e2e sets it)")
	}
	crds, err := os.ReadFile("../testdata/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	g := proc.NewGroup(t.TempDir())
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	k, err := Start(t.Context(), g, Config{Binaries: binaries, Folder: t.TempDir(), CRDs: crds})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestClusterAndGate(t *testing.T) {
	k := startCluster(t)
	load(t, k)
	gate, err := OpenGate(k)
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	u := user{gate: gate, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true,
	}}}
	defer u.client.CloseIdleConnections()
	const slices = "/apis/discovery.k8s.io/v1/endpointslices"
	t.Run("rights", func(t *testing.T) { testRights(t, k, u) })
	t.Run("hold", func(t *testing.T) { testHold(t, u, slices) })
	t.Run("cut", func(t *testing.T) {
		gate.CutAfter("endpointslices", 5000)
		if n, err := u.read(t.Context(), slices); n != 5000 || err == nil {
			t.Errorf("read %d bytes, %v", n, err)
		}
		gate.Refuse("endpointslices", http.StatusForbidden)
		if _, err := u.read(t.Context(), slices); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("%v", err)
		}
		gate.Pass("endpointslices")
	})
	t.Run("drop", func(t *testing.T) { testDrop(t, u, slices) })
	t.Run("stall", func(t *testing.T) { testStall(t, k, u) })
	t.Run("compact", func(t *testing.T) {
		if err := k.Compact(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("CRD", func(t *testing.T) { testCRD(t, k, u) })
}

func load(t *testing.T, k *Cluster) {
	t.Helper()
	g := fixture.New(fixture.Options{TLSPercent: 10, Backends: []fixture.Backend{{Name: "x", Addrs: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:80")}}}})
	const n = 100
	objects := g.Shared(n)
	for _, h := range g.Hosts(n) {
		objects = append(objects, h.Objects...)
	}
	if err := k.Namespaces(t.Context(), fixture.Namespaces(n)...); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time all are there already
		began := time.Now()
		if err := k.Load(t.Context(), objects); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d objects in %v", len(objects), time.Since(began))
	}
	if err := k.Delete(t.Context(), objects[0]); err != nil {
		t.Fatal(err)
	}
}

func testRights(t *testing.T, k *Cluster, u user) {
	for _, except := range [][]string{nil, {"secrets"}, {"httpproxies", "namespaces"}, nil} {
		if err := k.AllowReading(t.Context(), except...); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.read(t.Context(), "/api/v1/configmaps"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("%v: holdfast may read what it has no need of", err)
	}
}

func testHold(t *testing.T, u user, path string) {
	u.gate.Hold("endpointslices")
	before := u.gate.Reads("endpointslices")
	done := make(chan error)
	go func() {
		_, err := u.read(t.Context(), path)
		done <- err
	}()
	if err := proc.Until(t.Context(), "the read", 10*time.Second, func(context.Context) error {
		if u.gate.Reads("endpointslices") == before {
			return errors.New("not asked")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		t.Errorf("the read was not held (%v)", err)
	default:
	}
	u.gate.Pass("endpointslices")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func testDrop(t *testing.T, u user, path string) {
	response, err := u.get(t.Context(), path+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "ADDED") {
		t.Errorf("%.100s, %v: the first event did not come through", line, err)
	}
	u.gate.DropWatches("endpointslices")
	if _, err := io.Copy(io.Discard, lines); err == nil {
		t.Error("the watch ended in order, not broken")
	}
}

// testStall: a watch that runs brings nothing more until Pass.
func testStall(t *testing.T, k *Cluster, u user) {
	response, err := u.get(t.Context(), "/api/v1/namespaces?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	u.gate.Stall("namespaces")
	if err := k.Namespaces(t.Context(), "stalled"); err != nil {
		t.Fatal(err)
	}
	came := make(chan error)
	go func() {
		for {
			line, err := lines.ReadString('\n')
			if err != nil || strings.Contains(line, "stalled") {
				came <- err
				return
			}
		}
	}()
	select {
	case err := <-came:
		t.Errorf("the event came through (%v)", err)
		return
	case <-time.After(200 * time.Millisecond):
	}
	u.gate.Pass("namespaces")
	if err := <-came; err != nil {
		t.Error(err)
	}
}

func testCRD(t *testing.T, k *Cluster, u user) {
	const path = "/apis/projectcontour.io/v1/httpproxies"
	if err := k.RemoveCRD(t.Context(), "httpproxies.projectcontour.io"); err != nil {
		t.Fatal(err)
	}
	if _, err := u.read(t.Context(), path); err == nil {
		t.Error("the kind is served without its CRD")
	}
	if err := k.InstallCRDs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := u.read(t.Context(), path); err != nil {
		t.Error(err)
	}
}

// user is holdfast's user behind a Gate.
type user struct {
	gate   *Gate
	client *http.Client
}

func (u user) get(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.gate.Address()+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+holdfastToken)
	return u.client.Do(request)
}

func (u user) read(ctx context.Context, path string) (int64, error) {
	response, err := u.get(ctx, path)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return 0, errors.New(response.Status)
	}
	return io.Copy(io.Discard, response.Body)
}
