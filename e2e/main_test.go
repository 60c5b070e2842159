package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-xds/holdfast/e2e/kube"
	"github.com/holdfast-xds/holdfast/e2e/netns"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// parts are the binaries under test. Set by TestMain, then only read.
var parts struct {
	envoy, kube, holdfast string
	folder                string // for all worlds
}

// closers end the shared worlds, in the order of their making. Only tests, one
// at a time, and TestMain touch it.
var closers []func() error

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	parts.envoy, parts.kube, parts.holdfast = os.Getenv("HOLDFAST_TEST_ENVOY"), os.Getenv("HOLDFAST_TEST_K8S_BIN"), os.Getenv("HOLDFAST_TEST_BIN")
	if parts.envoy == "" {
		return m.Run() // every test says why it is skipped
	}
	if !netns.Inside() {
		return outside(m)
	}
	if err := netns.SetUp(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return inside(m)
}

// outside does what needs the machine's own network, then runs all again in a
// network namespace.
func outside(m *testing.M) int {
	if parts.holdfast == "" {
		dir, err := os.MkdirTemp("", "holdfast-e2e-bin-")
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
		defer os.RemoveAll(dir)
		parts.holdfast = filepath.Join(dir, "holdfast")
		if out, err := exec.Command("go", "build", "-o", parts.holdfast, "../cmd/holdfast").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "e2e: go build: %v\n%s", err, out)
			return 1
		}
		if err := os.Setenv("HOLDFAST_TEST_BIN", parts.holdfast); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			return 1
		}
	}
	code, err := netns.Rerun()
	switch {
	case errors.Is(err, netns.ErrRefused): // not root: free ports of the machine do
		return inside(m)
	case err != nil:
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return code
}

func inside(m *testing.M) int {
	done, err := makeFolder()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer done()
	code := m.Run()
	for i := len(closers) - 1; i >= 0; i-- {
		if err := closers[i](); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			code = max(code, 1)
		}
	}
	return code
}

func makeFolder() (done func(), err error) {
	if keep := os.Getenv("HOLDFAST_TEST_KEEP"); keep != "" {
		parts.folder = keep
		return func() {}, os.MkdirAll(keep, 0o755)
	}
	parts.folder, err = os.MkdirTemp("", "holdfast-e2e-")
	return func() { _ = os.RemoveAll(parts.folder) }, err
}

// needEnvoy skips the test where there is none.
func needEnvoy(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a test on real parts: skipped by -short")
	}
	if parts.envoy == "" {
		t.Skip("HOLDFAST_TEST_ENVOY is not set: no Envoy to test with (make e2e sets it)")
	}
}

// needCluster skips the test where no API server can run, and gives an address
// that it accepts for backends.
func needCluster(t *testing.T) netip.Addr {
	t.Helper()
	needEnvoy(t)
	if parts.kube == "" {
		t.Skip("HOLDFAST_TEST_K8S_BIN is not set: no API server to test with (make e2e sets it)")
	}
	ip, err := kube.Address()
	if err != nil {
		t.Skipf("no root to make a network namespace with, and %v", err)
	}
	return ip
}

// newRig makes a Rig that lives until the end of all tests.
func newRig(name string, ip netip.Addr) (*rig.Rig, error) {
	r, err := ownRig(name, rig.Options{IP: ip})
	if err == nil {
		closers = append(closers, r.Close)
	}
	return r, err
}

// ownRig makes a Rig that its maker closes.
func ownRig(name string, o rig.Options) (*rig.Rig, error) {
	o.Folder, o.Holdfast, o.Envoy, o.Seed = filepath.Join(parts.folder, name), parts.holdfast, parts.envoy, 20
	if err := os.MkdirAll(o.Folder, 0o755); err != nil {
		return nil, err
	}
	return rig.New(o)
}
