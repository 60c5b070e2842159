package e2e

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/proc"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// patience is how long a loaded machine may take for what takes a moment.
const patience = time.Minute

// world is a Rig with all its hosts, shared by tests.
type world struct {
	*rig.Rig
	hosts   []fixture.Host
	targets []load.Target
	// next number of a host that was not used yet.
	next  int
	first beginning

	// put writes a host, remove deletes it.
	put, remove func(context.Context, *fixture.Host) error

	folder  string   // the folder world's objects
	cluster *cluster // the cluster world's
}

// beginning is what the first start came to, holdfast and Envoy both new.
type beginning struct {
	ready           time.Duration // from the start of both
	sample          load.Report   // some hosts, the moment Envoy was ready
	holdfast, envoy proc.Usage    // once all was quiet
	// others is how many processors were busy with something else until ready.
	others float64
}

// begin starts a new holdfast and a new Envoy.
func (w *world) begin(ctx context.Context, source ...string) error {
	began, others := time.Now(), w.others()
	if err := w.StartHoldfast(source...); err != nil {
		return err
	}
	if err := w.StartEnvoy(ctx); err != nil {
		return err
	}
	if err := w.Envoy.WaitReady(ctx, patience); err != nil {
		return err
	}
	w.first.ready = time.Since(began)
	w.first.others = (w.others() - others).Seconds() / w.first.ready.Seconds()
	w.first.sample = w.sample(ctx)
	if _, err := w.Settle(ctx, patience); err != nil {
		return err
	}
	var err1, err2 error
	w.first.holdfast, err1 = w.Holdfast.Usage()
	w.first.envoy, err2 = w.Envoy.Usage()
	return errors.Join(err1, err2)
}

// others is the processor time that was not ours.
func (w *world) others() time.Duration {
	all, err := proc.MachineCPU()
	if err != nil {
		return 0
	}
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return 0
	}
	return all - w.Processes.CPU() - time.Duration(self.Utime.Nano()+self.Stime.Nano())
}

// sample asks a tenth of the targets once, from all over.
func (w *world) sample(ctx context.Context) load.Report {
	c := w.Client(nil)
	for i := 0; i < len(w.targets); i += 10 {
		c.Targets = append(c.Targets, w.targets[i])
	}
	c.Concurrency, c.Once = 8, true
	return load.Start(ctx, c).Wait()
}

// fresh gives a host that does not exist yet.
func (w *world) fresh() fixture.Host {
	w.next++
	return w.Generator.Host(w.next - 1)
}

// freshHost gives one with TLS, or without.
func (w *world) freshHost(tls bool) fixture.Host {
	for {
		if h := w.fresh(); h.TLS == tls {
			return h
		}
	}
}

// folderWorld is read by the tests through inFolder.
var folderWorld = sync.OnceValues(func() (*world, error) {
	r, err := newRig("folder", netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		return nil, err
	}
	w := &world{Rig: r, next: fixture.Default}
	if w.folder, err = r.Objects(); err != nil {
		return nil, err
	}
	if w.hosts, err = fixture.WriteAll(w.folder, r.Generator, fixture.Default); err != nil {
		return nil, err
	}
	w.targets = rig.Targets(w.hosts)
	w.put = func(_ context.Context, h *fixture.Host) error { return fixture.WriteHost(w.folder, h) }
	w.remove = func(_ context.Context, h *fixture.Host) error { return fixture.RemoveHost(w.folder, h) }
	return w, w.begin(context.Background(), "--source=dir:"+w.folder)
})

// inFolder gives the folder world, settled.
func inFolder(t *testing.T) *world {
	t.Helper()
	needEnvoy(t)
	w, err := folderWorld()
	if err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	return w
}

// settle waits until nothing is to be done any more.
func (w *world) settle(t *testing.T, except ...string) *holdfast.Status {
	t.Helper()
	s, err := w.Settle(t.Context(), patience, except...)
	if err != nil {
		t.Fatalf("%v\n%s", err, w.Holdfast.Tail(20))
	}
	return s
}

func (w *world) moment(t *testing.T) rig.Moment {
	t.Helper()
	m, err := w.Moment(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// background is the load under which things happen: enough to see a gap of a
// few milliseconds, little enough to leave the machine to what is tested.
func (w *world) background(t *testing.T) *load.Run {
	c := w.Client(w.targets)
	c.Concurrency, c.Rate, c.FreshPercent = 8, 400, 30
	return load.Start(t.Context(), c)
}

// unharmed ends a load and fails the test for every failed request.
func unharmed(t *testing.T, r *load.Run) {
	t.Helper()
	report := r.Stop()
	t.Logf("load: %v", report)
	if report.Failed > 0 || report.Requests == 0 {
		t.Errorf("%d of %d requests failed", report.Failed, report.Requests)
	}
}

// sweep asks every target once.
func (w *world) sweep(t *testing.T) {
	t.Helper()
	c := w.Client(w.targets)
	c.Concurrency, c.Once = 8, true
	if r := load.Start(t.Context(), c).Wait(); r.Failed > 0 {
		t.Errorf("not every host is served: %v", r)
	}
}

// watch asks for a host without a pause.
func (w *world) watch(t *testing.T, h *fixture.Host) *load.Watch {
	return load.StartWatch(t.Context(), w.Client(nil), rig.Targets([]fixture.Host{*h})[0])
}

// until waits for a watch's outcome.
func until(t *testing.T, w *load.Watch, outcome string) {
	t.Helper()
	if err := within(t.Context(), w, outcome, patience); err != nil {
		t.Error(err)
	}
}
