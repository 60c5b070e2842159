// Package suite runs the scenarios: a real holdfast process on a synthetic or a real
// API server or on a folder, simulated Envoys and a real one, and the peers beside them.
//
//	workload ──▶ origin    ──▶ bin/holdfast ──▶ client.Fleet, Envoy
//	        └──▶ shadow (direct.Source): what each edit changes, and so what to
//	             wait for; the resources that the peers are fed
//
// What a figure means is said where it is measured.
package suite

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/client"
	"github.com/holdfast-xds/holdfast/benchmarks/direct"
	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/proc"
	"github.com/holdfast-xds/holdfast/index"
)

// Config of a suite.
type Config struct {
	Holdfast string // the binary
	Envoy    string // the binary; empty leaves the real Envoy out
	Self     string // a program that runs peers: "SELF peer NAME"
	Folder   string // for logs and files
	Kube     string // a folder with etcd and kube-apiserver; for RealKube alone
	CRDs     string // their file; for RealKube alone
	// Backends listen at this address; an API server refuses loopback in endpoints.
	Backends netip.Addr
	Log      func(format string, args ...any)
	// Profiles is a folder for CPU and heap profiles of holdfast; empty takes none.
	Profiles string
	// Repeat each edit so often.
	Repeat int
}

// patience bounds every wait.
const patience = 3 * time.Minute

// subject of the suite's own rows.
const subject = "holdfast"

// rig is one size set up: a filled API server, and a holdfast that can be
// started on it.
type rig struct {
	Config
	run    *report.Run
	hosts  int
	source string
	work   *workload.Workload
	origin origin
	shadow *direct.Source
	group  *proc.Group
	server *holdfast.Server
	fleet  *client.Fleet
	leader *client.Client // remembers; nil before connect
	// backends that the hosts' endpoints point at.
	backends []fixture.Backend
}

// newWork is workload.New or NewTLS.
type newWork func(hosts int, backends []fixture.Backend) *workload.Workload

var loopback = netip.MustParseAddr("127.0.0.1")

func newRig(ctx context.Context, c Config, run *report.Run, make newWork, s Step, backends []fixture.Backend) (*rig, error) {
	hosts := s.Hosts
	r := &rig{Config: c, run: run, hosts: hosts, source: s.Source, work: make(hosts, backends), backends: backends, fleet: client.NewFleet(ctx)}
	dir, err := os.MkdirTemp(c.Folder, fmt.Sprintf("%d-", hosts))
	if err != nil {
		return nil, err
	}
	r.Folder = dir
	r.group = proc.NewGroup(dir)
	if r.origin, err = r.openOrigin(ctx, s.Source); err != nil {
		return nil, errors.Join(err, r.group.Close())
	}
	if err := r.origin.load(ctx, r.work); err != nil {
		return r, err
	}
	if r.shadow, err = direct.NewSource(); err != nil {
		return r, err
	}
	r.shadow.Load(make(hosts, backends))
	return r, r.prepare()
}

func (r *rig) prepare() error {
	ports, err := proc.FreePorts(loopback, 4)
	if err != nil {
		return err
	}
	r.server = holdfast.Prepare(r.group, holdfast.Config{
		Binary: r.Holdfast, Source: r.origin.flags(),
		XDS: ports[0], Admin: ports[1], HTTP: ports[2], HTTPS: ports[3],
	})
	return nil
}

func (r *rig) close() error {
	r.fleet.Close()
	return errors.Join(r.group.Close(), r.origin.close())
}

func (r *rig) note(scenario, variant string, clients int, figures map[report.Metric]float64, text string) {
	row := report.Row{
		Scenario: scenario, Variant: variant, Subject: subject, Source: r.source,
		Hosts: r.hosts, Clients: clients, Figures: figures, Note: text,
	}
	r.run.Add(row)
	r.Log("%s", row.String())
}

// connect opens the leader's stream, fresh or again.
func (r *rig) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if r.leader == nil {
		var err error
		if r.leader, err = r.fleet.NewClient("leader", r.server.Config.XDS.String(), true); err != nil {
			return err
		}
	}
	return r.leader.Connect(ctx)
}

// complete waits until a client holds as many resources of each type as the
// shadow has.
func (r *rig) complete(ctx context.Context, c *client.Client) error {
	want := r.counts()
	err := poll(ctx, patience, func() error {
		if held := c.Held(); held != want && c.Broken() == nil {
			return fmt.Errorf("client %s holds %v of %v", c.Node, held, want)
		}
		return nil
	})
	return errors.Join(err, c.Broken())
}

func (r *rig) counts() (out [6]int) {
	s := r.shadow.Index.Snapshot()
	for t, url := range client.Types {
		for range s.Resources(url) {
			out[t]++
		}
	}
	return out
}

// poll is proc.Until with a pace fit for milliseconds.
func poll(ctx context.Context, limit time.Duration, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := time.NewTicker(time.Millisecond)
	defer t.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", limit, err)
		case <-t.C:
		}
	}
}

// quiet waits until every kind was observed and a client was sent nothing for a
// while.
func (r *rig) quiet(ctx context.Context, c *client.Client) error {
	if _, err := r.server.Await(ctx, "all kinds observed", patience, observed); err != nil {
		return err
	}
	return r.silent(ctx, c)
}

func observed(s *holdfast.Status) error {
	for _, k := range s.Kinds {
		if k.State != "observed" && k.State != "absent" {
			return fmt.Errorf("%s is %s", k.Kind, k.State)
		}
	}
	return nil
}

// silence is longer than every grace.
const silence = 1500 * time.Millisecond

// silent waits until a client was sent nothing for longer than every grace.
func (r *rig) silent(ctx context.Context, c *client.Client) error {
	last, since := c.Totals(), time.Now()
	return poll(ctx, patience, func() error {
		if now := c.Totals(); now != last {
			last, since = now, time.Now()
		}
		if time.Since(since) < silence {
			return errors.New("responses still come")
		}
		return nil
	})
}

// edit makes the next edit of a sort, and gives when it was written and what a
// client will be sent for it.
func (r *rig) edit(ctx context.Context, e workload.Edit) (fixture.Host, time.Time, []client.Key, error) {
	host, changes := r.work.Next(e)
	at, err := r.origin.write(ctx, changes)
	if err != nil {
		return host, at, nil, err
	}
	return host, at, r.expected(changes), nil
}

// expected applies changes to the shadow and gives the resources that have
// another body now, and the scopes that are gone. (Of other types a client
// learns of the end otherwise, or later.)
func (r *rig) expected(changes []workload.Change) []client.Key {
	before := r.shadow.Index.Snapshot()
	touched := map[index.ResourceKey]bool{}
	for _, commit := range r.shadow.Write(changes) {
		for _, k := range commit.Changed {
			touched[k] = true
		}
	}
	after := r.shadow.Index.Snapshot()
	var out []client.Key
	for k := range touched {
		t, ok := client.TypeOf(k.Type)
		if !ok {
			continue
		}
		was, is := before.Resource(k), after.Resource(k)
		switch {
		case is != nil && (was == nil || was.Digest != is.Digest):
			out = append(out, r.fleet.Key(t, k.Name))
		case is == nil && was != nil && t == client.Scopes:
			out = append(out, r.fleet.Key(t, k.Name))
		}
	}
	return out
}
