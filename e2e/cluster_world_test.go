package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/kube"
	"github.com/holdfast-xds/holdfast/e2e/proc"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// cluster is the API server of the cluster world.
type cluster struct {
	*kube.Cluster
	gate *kube.Gate
	// Sources: straight to the API server, or through the gate.
	direct, gated []string
	loading       time.Duration
}

// clusterWorld is read by the tests through inCluster.
var clusterWorld = sync.OnceValues(func() (*world, error) {
	w, err := newClusterWorld("cluster", fixture.Default)
	if err != nil {
		return nil, err
	}
	return w, w.begin(context.Background(), w.cluster.direct...)
})

// newClusterWorld gives a loaded API server with so many hosts, and neither
// holdfast nor Envoy running yet.
func newClusterWorld(name string, hosts int) (*world, error) {
	ip, err := kube.Address()
	if err != nil {
		return nil, err
	}
	r, err := newRig(name, ip)
	if err != nil {
		return nil, err
	}
	w := &world{Rig: r, hosts: r.Generator.Hosts(hosts), next: hosts}
	w.targets = rig.Targets(w.hosts)
	if w.cluster, err = startCluster(context.Background(), w); err != nil {
		return nil, err
	}
	w.put, w.remove = w.cluster.put, w.cluster.remove
	return w, nil
}

func startCluster(ctx context.Context, w *world) (*cluster, error) {
	crds, err := os.ReadFile(filepath.Join("testdata", "crds.yaml"))
	if err != nil {
		return nil, err
	}
	k, err := kube.Start(ctx, w.Processes, kube.Config{Binaries: parts.kube, Folder: w.Folder, CRDs: crds})
	if err != nil {
		return nil, err
	}
	c := &cluster{Cluster: k}
	if c.gate, err = kube.OpenGate(k); err != nil {
		return nil, err
	}
	closers = append(closers, c.gate.Close)
	direct, err1 := k.Kubeconfig("direct", "")
	gated, err2 := k.Kubeconfig("gated", c.gate.Address())
	c.direct = []string{"--source=kube", "--kubeconfig=" + direct}
	c.gated = []string{"--source=kube", "--kubeconfig=" + gated}
	return c, errors.Join(err1, err2, k.AllowReading(ctx), c.load(ctx, w))
}

// load writes all hosts.
func (c *cluster) load(ctx context.Context, w *world) error {
	began := time.Now()
	objects := w.Generator.Shared(len(w.hosts))
	for i := range w.hosts {
		objects = append(objects, w.hosts[i].Objects...)
	}
	err := errors.Join(c.Namespaces(ctx, fixture.Namespaces(len(w.hosts))...), c.Load(ctx, objects))
	c.loading = time.Since(began)
	return err
}

// put writes a host, its HTTPProxy last, as people do who deploy.
func (c *cluster) put(ctx context.Context, h *fixture.Host) error {
	for _, o := range h.Objects {
		if err := c.Apply(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes a host, its HTTPProxy first.
func (c *cluster) remove(ctx context.Context, h *fixture.Host) error {
	for i := len(h.Objects) - 1; i >= 0; i-- {
		if err := c.Delete(ctx, h.Objects[i]); err != nil {
			return err
		}
	}
	return nil
}

// inCluster gives the cluster world, settled, its holdfast straight on the API
// server.
func inCluster(t *testing.T) *world {
	t.Helper()
	needCluster(t)
	w, err := clusterWorld()
	if err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	return w
}

// behindGate gives the cluster world with its holdfast ended; Holdfast.Start
// starts it behind the gate. restore brings all back to where it was.
func behindGate(t *testing.T) (w *world, restore func()) {
	t.Helper()
	w = inCluster(t)
	if err := w.Holdfast.Kill(); err != nil {
		t.Fatal(err)
	}
	w.Holdfast.Config.Source = w.cluster.gated
	return w, func() {
		w.cluster.gate.PassAll()
		err := errors.Join(w.Holdfast.Kill(), w.cluster.AllowReading(t.Context()), w.StartHoldfast(w.cluster.direct...))
		if err != nil {
			t.Fatal(err)
		}
		w.settle(t)
	}
}

// told waits until the status says so of a kind.
func (w *world) told(t *testing.T, kind string, states ...string) {
	t.Helper()
	_, err := w.Holdfast.Await(t.Context(), "state of "+kind, patience, func(s *status) error {
		k := s.Kind(kind)
		for _, want := range states {
			if k.State == want {
				return nil
			}
		}
		return fmt.Errorf("%s is %q (%s), want one of %v", kind, k.State, k.Error, states)
	})
	if err != nil {
		t.Error(err)
	}
}

// stays checks for a while that something holds.
func stays(t *testing.T, what string, d time.Duration, check func() error) {
	t.Helper()
	end := time.Now().Add(d)
	_ = proc.Until(t.Context(), what, d, func(context.Context) error {
		if err := check(); err != nil {
			t.Errorf("%s did not stay, %v before the end: %v", what, time.Until(end), err)
			return nil
		}
		return errors.New("still so")
	})
}
