package page

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/holdfast-xds/holdfast/e2e/envoy"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/proc"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// patience is how long a loaded machine may take for what takes a moment.
const patience = time.Minute

// world is a holdfast with all its hosts and three Envoys, and a
// browser. It is shared by the tests.
type world struct {
	*rig.Rig
	folder  string // of the objects
	hosts   []fixture.Host
	envoys  []*envoy.Envoy
	browser *Browser
	url     string
	edits   int
}

// closers end the shared world. Only TestMain and the making of the world touch it.
var closers []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(closers) - 1; i >= 0; i-- {
		closers[i]()
	}
	os.Exit(code)
}

var shared = sync.OnceValues(makeWorld)

// inWorld gives the shared world.
func inWorld(t *testing.T) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("a test on real parts: skipped by -short")
	}
	if os.Getenv("HOLDFAST_TEST_ENVOY") == "" {
		t.Skip("HOLDFAST_TEST_ENVOY is not set: no Envoy to test with (make page-test sets it)")
	}
	chromium(t)
	w, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func makeWorld() (*world, error) {
	dir, err := os.MkdirTemp("", "holdfast-page-")
	if err != nil {
		return nil, err
	}
	closers = append(closers, func() { _ = os.RemoveAll(dir) })
	binary := filepath.Join(dir, "holdfast")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", binary, "./cmd/holdfast").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w\n%s", err, out)
	}
	r, err := rig.New(rig.Options{Folder: dir, Holdfast: binary, Envoy: os.Getenv("HOLDFAST_TEST_ENVOY"), IP: netip.MustParseAddr("127.0.0.1"), Seed: 20})
	if err != nil {
		return nil, err
	}
	closers = append(closers, func() { _ = r.Close() }) // the processes end with us in any case
	w := &world{Rig: r, url: "http://" + r.Holdfast.Config.Admin.String()}
	ctx := context.Background()
	if err := errors.Join(w.serve(), w.connect(ctx, 3)); err != nil {
		return nil, err
	}
	path, err := find()
	if err != nil {
		return nil, err
	}
	if w.browser, err = Start(ctx, path); err != nil {
		return nil, err
	}
	closers = append(closers, w.browser.Close)
	return w, nil
}

// serve starts holdfast on a folder of all hosts, and one that is broken.
func (w *world) serve() error {
	var err error
	if w.folder, err = w.Objects(); err != nil {
		return err
	}
	if w.hosts, err = fixture.WriteAll(w.folder, w.Generator, fixture.Default); err != nil {
		return err
	}
	if err := fixture.WriteRaw(w.folder, "broken", []byte(broken)); err != nil {
		return err
	}
	return w.StartHoldfast("--source=dir:" + w.folder)
}

const broken = `apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {namespace: team-000, name: broken}
spec:
  virtualhost: {fqdn: broken.team-000.example}
  routes:
  - services: [{name: nothing-of-that-name, port: 80}]
`

func (w *world) connect(ctx context.Context, n int) error {
	ports, err := proc.FreePorts(netip.MustParseAddr("127.0.0.1"), n)
	if err != nil {
		return err
	}
	for i, admin := range ports {
		node := fmt.Sprintf("edge-%d", i+1)
		b, err := w.Holdfast.Bootstrap(ctx, node, admin)
		if err != nil {
			return err
		}
		e, err := envoy.Start(w.Processes, envoy.Config{Binary: w.Options.Envoy, Bootstrap: b, Admin: admin, Folder: w.Folder, Name: node})
		if err != nil {
			return err
		}
		w.envoys = append(w.envoys, e)
		if err := e.WaitReady(ctx, patience); err != nil {
			return err
		}
	}
	_, err = w.Holdfast.Await(ctx, "all Envoys have all", patience, func(s *holdfast.Status) error {
		for i := range w.envoys {
			if err := s.Quiet(fmt.Sprintf("edge-%d", i+1)); err != nil {
				return err
			}
		}
		return s.Lists()
	})
	return err
}

// frozen gives the shared world with its last Envoy frozen for some seconds, and a
// word about it in the status. One that stays frozen is cut off after 40 s.
func frozen(t *testing.T) *world {
	t.Helper()
	w := inWorld(t)
	if err := w.freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.thaw(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) last() *envoy.Envoy { return w.envoys[len(w.envoys)-1] }

// freeze stops the last Envoy, changes a host a few times, and waits until holdfast
// has noticed that it does not answer.
func (w *world) freeze(ctx context.Context) error {
	if err := syscall.Kill(w.last().PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	for range 4 {
		if err := errors.Join(w.edit(), w.acknowledged(ctx)); err != nil {
			return err
		}
	}
	return proc.Until(ctx, "a word about the frozen Envoy", patience, func(ctx context.Context) error {
		return w.says(ctx, "edge-3 has not answered")
	})
}

// thaw lets it go on, and waits until it has all.
func (w *world) thaw(ctx context.Context) error {
	if err := syscall.Kill(w.last().PID(), syscall.SIGCONT); err != nil {
		return err
	}
	_, err := w.Holdfast.Await(ctx, "the Envoy that was frozen", patience, func(s *holdfast.Status) error { return s.Quiet("edge-3") })
	return err
}

// edited is the host that the tests change.
func (w *world) edited() *fixture.Host { return &w.hosts[55] }

// edit moves the endpoints of a host to another port.
func (w *world) edit() error {
	w.edits++
	h := w.edited()
	for _, o := range h.Objects {
		if s, ok := o.(*discoveryv1.EndpointSlice); ok {
			*s.Ports[0].Port = int32(23000 + w.edits)
		}
	}
	return fixture.WriteHost(w.folder, h)
}

// acknowledged waits until those Envoys that run have the last edit.
func (w *world) acknowledged(ctx context.Context) error {
	revision := uint64(0)
	_, err := w.Holdfast.Await(ctx, "the edit's answer", patience, func(s *holdfast.Status) error {
		if revision == 0 {
			revision = s.Revision
		}
		return errors.Join(s.Quiet("edge-1"), s.Quiet("edge-2"))
	})
	return err
}

func (w *world) says(ctx context.Context, text string) error {
	s, err := w.Holdfast.Status(ctx)
	if err != nil {
		return err
	}
	if !strings.Contains(string(s.Raw), text) {
		return fmt.Errorf("no %q in the status", text)
	}
	return nil
}
