package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/apiserver"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/kube"
	"github.com/holdfast-xds/holdfast/index"
)

// Where the objects are. The synthetic API server is the default.
const (
	Synthetic = "synthetic"
	RealKube  = "kube"   // a real kube-apiserver with etcd
	InFolder  = "folder" // of YAML, a file for each object
)

// origin is where the objects are, and where they are edited.
type origin interface {
	load(ctx context.Context, w *workload.Workload) error
	// write makes an edit, and gives when its first object was written: when it was
	// there to be seen, or before, where that can't be told.
	write(ctx context.Context, changes []workload.Change) (time.Time, error)
	// flags of holdfast serve.
	flags() []string
	// kubeconfig is the path of one; empty when there is no API server.
	kubeconfig() string
	close() error
}

// holder is an origin that can keep a kind's list back.
type holder interface {
	Hold(k index.Kind)
	Release(k index.Kind)
}

func (r *rig) openOrigin(ctx context.Context, source string) (origin, error) {
	switch source {
	case Synthetic:
		return openSynthetic(r.Folder)
	case InFolder:
		f := folder(filepath.Join(r.Folder, "objects"))
		return f, os.Mkdir(string(f), 0o700)
	case RealKube:
		return r.openKube(ctx)
	}
	return nil, fmt.Errorf("source %q: want %s, %s or %s", source, Synthetic, RealKube, InFolder)
}

// synthetic is as much of an API server as a watcher sees.
type synthetic struct {
	*apiserver.Server
	file string
}

func openSynthetic(dir string) (*synthetic, error) {
	s, err := apiserver.Start()
	if err != nil {
		return nil, err
	}
	o := &synthetic{s, filepath.Join(dir, "kubeconfig")}
	if err := os.WriteFile(o.file, s.Kubeconfig(), 0o600); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return o, nil
}

func (s *synthetic) load(_ context.Context, w *workload.Workload) error { return s.Load(w) }

func (s *synthetic) write(_ context.Context, changes []workload.Change) (time.Time, error) {
	return s.Write(changes)
}

func (s *synthetic) flags() []string    { return fromCluster(s.file) }
func (s *synthetic) kubeconfig() string { return s.file }
func (s *synthetic) close() error       { return s.Close() }

func fromCluster(kubeconfig string) []string {
	return []string{"--source=kube", "--kubeconfig=" + kubeconfig}
}

// folder of YAML.
type folder string

func (f folder) load(ctx context.Context, w *workload.Workload) error {
	for o := range w.Objects() {
		if err := errors.Join(ctx.Err(), f.put(o)); err != nil {
			return err
		}
	}
	return nil
}

func (f folder) put(o fixture.Object) error { return fixture.Write(string(f), fileOf(o), o) }

func fileOf(o fixture.Object) string {
	return strings.ToLower(o.GetObjectKind().GroupVersionKind().Kind) + "." + o.GetNamespace() + "." + o.GetName()
}

func (f folder) write(_ context.Context, changes []workload.Change) (time.Time, error) {
	at := time.Now()
	for _, c := range changes {
		err := error(nil)
		if c.Deleted {
			err = fixture.Remove(string(f), fileOf(c.Object))
		} else {
			err = f.put(c.Object)
		}
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

func (f folder) flags() []string  { return []string{"--source=dir:" + string(f)} }
func (folder) kubeconfig() string { return "" }
func (folder) close() error       { return nil }

// cluster is a real API server. Its processes end with the rig's.
type cluster struct {
	*kube.Cluster
	file string
}

func (r *rig) openKube(ctx context.Context) (origin, error) {
	crds, err := os.ReadFile(r.CRDs)
	if err != nil {
		return nil, err
	}
	k, err := kube.Start(ctx, r.group, kube.Config{Binaries: r.Kube, Folder: r.Folder, CRDs: crds})
	if err != nil {
		return nil, err
	}
	file, err := k.Kubeconfig("bench", "")
	return cluster{k, file}, errors.Join(err, k.AllowReading(ctx))
}

func (c cluster) load(ctx context.Context, w *workload.Workload) error {
	var namespaces, others []fixture.Object
	for o := range w.Objects() {
		if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
			namespaces = append(namespaces, o)
		} else {
			others = append(others, o)
		}
	}
	if err := c.Load(ctx, namespaces); err != nil {
		return err
	}
	return c.Load(ctx, others)
}

func (c cluster) write(ctx context.Context, changes []workload.Change) (time.Time, error) {
	at := time.Now()
	for _, x := range changes {
		err := error(nil)
		if x.Deleted {
			err = c.Delete(ctx, x.Object)
		} else {
			err = c.Apply(ctx, x.Object)
		}
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

func (c cluster) flags() []string    { return fromCluster(c.file) }
func (c cluster) kubeconfig() string { return c.file }
func (cluster) close() error         { return nil }
