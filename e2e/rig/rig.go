// Package rig puts a holdfast, an Envoy and the backends behind it together,
// the way the tests and the demo need them:
//
//	load ──▶ Envoy ──▶ backends
//	           ▲
//	        holdfast ◀── a folder, or an API server
//
// All addresses are free ports of this machine, so several rigs can run at the
// same time. Close ends everything that the Rig started.
package rig

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/backend"
	"github.com/holdfast-xds/holdfast/e2e/envoy"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// Node is the node id of a Rig's Envoy.
const Node = "rig"

// backendNames of a Rig's backends.
var backendNames = []string{"amber", "birch", "cedar", "dahlia"}

// loopback is where holdfast and Envoy listen.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Options of a Rig.
type Options struct {
	Folder          string     // exists; for logs, objects and bootstraps
	Holdfast, Envoy string     // binaries
	IP              netip.Addr // of the backends
	Seed            uint64
	TLSPercent      int // of the hosts; 10 when 0
}

// Rig is one holdfast with one Envoy.
type Rig struct {
	Options
	Processes   *proc.Group
	Backends    []*backend.Backend
	Generator   *fixture.Generator
	Holdfast    *holdfast.Server
	Envoy       *envoy.Envoy
	HTTP, HTTPS netip.AddrPort

	envoyAdmin netip.AddrPort
}

// New starts the backends and prepares the rest.
func New(o Options) (*Rig, error) {
	r := &Rig{Options: o, Processes: proc.NewGroup(o.Folder)}
	if err := r.startBackends(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	ports, err := proc.FreePorts(loopback, 5)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.HTTP, r.HTTPS, r.envoyAdmin = ports[2], ports[3], ports[4]
	r.Holdfast = holdfast.Prepare(r.Processes, holdfast.Config{
		Binary: o.Holdfast, XDS: ports[0], Admin: ports[1], HTTP: r.HTTP, HTTPS: r.HTTPS,
	})
	return r, nil
}

func (r *Rig) startBackends() error {
	var known []fixture.Backend
	for _, name := range backendNames {
		any := netip.AddrPortFrom(r.IP, 0)
		b, err := backend.Start(name, any, any)
		if err != nil {
			return err
		}
		r.Backends = append(r.Backends, b)
		known = append(known, fixture.Backend{Name: name, Addrs: b.Addrs()})
	}
	r.Generator = fixture.New(fixture.Options{Seed: r.Seed, Backends: known, TLSPercent: cmp.Or(r.TLSPercent, 10)})
	return nil
}

// Close ends all.
func (r *Rig) Close() error {
	errs := []error{r.Processes.Close()}
	for _, b := range r.Backends {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// Objects is the folder of manifests for a folder source; it is made.
func (r *Rig) Objects() (string, error) {
	dir := filepath.Join(r.Folder, "objects")
	return dir, os.MkdirAll(dir, 0o755)
}

// StartHoldfast starts it with a source: "--source=dir:…", or "--source=kube"
// with what belongs to it.
func (r *Rig) StartHoldfast(source ...string) error {
	r.Holdfast.Config.Source = source
	return r.Holdfast.Start()
}

// StartEnvoy starts Envoy from holdfast's bootstrap.
func (r *Rig) StartEnvoy(ctx context.Context) error {
	b, err := r.Holdfast.Bootstrap(ctx, Node, r.envoyAdmin)
	if err != nil {
		return err
	}
	r.Envoy, err = envoy.Start(r.Processes, envoy.Config{Binary: r.Options.Envoy, Bootstrap: b, Admin: r.envoyAdmin, Folder: r.Folder})
	return err
}

// calm is how long nothing may happen before a Rig counts as settled: longer
// than the grace that holdfast gives a cluster before it removes it.
const calm = 2 * time.Second

// Settle waits until all lists but those of the excepted kinds are complete,
// Envoy has acknowledged all, and nothing more was sent for a while.
func (r *Rig) Settle(ctx context.Context, limit time.Duration, except ...string) (*holdfast.Status, error) {
	var sent holdfast.Sent
	var since time.Time
	return r.Holdfast.Await(ctx, "settled", limit, func(s *holdfast.Status) error {
		if err := errors.Join(s.Lists(except...), s.Quiet(Node)); err != nil {
			since = time.Time{}
			return err
		}
		if now := s.Sent(); since.IsZero() || now != sent {
			sent, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < calm {
			return fmt.Errorf("calm for %v only", quiet.Round(time.Millisecond))
		}
		return nil
	})
}

// Targets gives a load's targets for all probes of the hosts.
func Targets(hosts []fixture.Host) []load.Target {
	var out []load.Target
	for i := range hosts {
		for _, p := range hosts[i].Probes {
			out = append(out, load.Target{Host: hosts[i].FQDN, Path: p.Path, Headers: p.Headers, TLS: hosts[i].TLS, Backend: p.Backend})
		}
	}
	return out
}

// Client gives a load's configuration for this Rig; the caller sets how much.
func (r *Rig) Client(targets []load.Target) load.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.Generator.CA())
	return load.Config{HTTP: r.HTTP, HTTPS: r.HTTPS, Roots: roots, Targets: targets, Seed: r.Seed}
}
