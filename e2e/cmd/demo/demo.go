package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/proc"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// patience is for slow machines: what it bounds takes seconds.
const patience = 2 * time.Minute

// downtime is how long holdfast is away after each kill.
const downtime = time.Second

// demo is the story and what came of it.
type demo struct {
	config config
	rig    *rig.Rig
	screen *screen
	hosts  []fixture.Host

	starts        []start // the first one, then the restarts
	before, after rig.Moment
	load          load.Report
	memory        []memory // when all was ready, and at the end
}

// memory is what both processes use at one time.
type memory struct{ holdfast, envoy proc.Usage }

// start is what one start of holdfast took and sent.
type start struct {
	settled time.Duration // until Envoy had all, or was known to have it
	sent    holdfast.Sent
}

func newDemo(c config, folder string) (*demo, error) {
	r, err := rig.New(rig.Options{
		Folder: folder, Holdfast: c.holdfast, Envoy: c.envoy, IP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Seed: 1,
	})
	if err != nil {
		return nil, err
	}
	return &demo{config: c, rig: r, screen: newScreen()}, nil
}

// play runs the story.
func (d *demo) play(ctx context.Context) error {
	defer d.screen.close()
	if err := d.first(ctx); err != nil {
		return err
	}
	traffic := d.traffic(ctx)
	defer traffic.Stop()
	end := time.Now().Add(d.config.duration)
	for n := range d.config.restarts {
		if err := d.restart(ctx, n+1); err != nil {
			return err
		}
	}
	d.screen.step("load goes on")
	pause(ctx, time.Until(end))
	d.load = traffic.Stop()
	return d.measure(ctx)
}

// first makes the objects and starts all.
func (d *demo) first(ctx context.Context) error {
	d.screen.step("writing %s hosts", grouped(d.config.hosts))
	objects, err := d.rig.Objects()
	if err != nil {
		return err
	}
	if d.hosts, err = fixture.WriteAll(objects, d.rig.Generator, d.config.hosts); err != nil {
		return err
	}
	d.screen.step("starting holdfast and Envoy")
	began := time.Now()
	if err := d.rig.StartHoldfast("--source=dir:" + objects); err != nil {
		return err
	}
	if err := d.rig.StartEnvoy(ctx); err != nil {
		return err
	}
	if err := d.rig.Envoy.WaitReady(ctx, patience); err != nil {
		return err
	}
	ready := time.Since(began)
	if err := d.measureMemory(); err != nil {
		return err
	}
	if err := d.sweep(ctx); err != nil {
		return err
	}
	s, err := d.rig.Settle(ctx, patience)
	if err != nil {
		return err
	}
	d.starts = append(d.starts, start{settled: ready, sent: s.Sent()})
	d.before, err = d.rig.Moment(ctx)
	return err
}

// sweep asks every host once: the story begins with all of them served.
func (d *demo) sweep(ctx context.Context) error {
	d.screen.step("asking every host once")
	c := d.rig.Client(rig.Targets(d.hosts))
	c.Concurrency, c.Once = 8, true
	r := load.Start(ctx, c).Wait()
	if r.Failed > 0 {
		return fmt.Errorf("not every host is served at the start: %v", r)
	}
	return ctx.Err()
}

func (d *demo) traffic(ctx context.Context) *load.Run {
	c := d.rig.Client(rig.Targets(d.hosts))
	c.Concurrency, c.Rate, c.FreshPercent = 8, d.config.rate, 30
	r := load.Start(ctx, c)
	d.screen.follow(r)
	return r
}

func (d *demo) restart(ctx context.Context, n int) error {
	d.screen.step("restart %d of %d: SIGKILL", n, d.config.restarts)
	if err := d.rig.Holdfast.Kill(); err != nil {
		return err
	}
	pause(ctx, downtime)
	d.screen.step("restart %d of %d: holdfast starts", n, d.config.restarts)
	began := time.Now()
	if err := d.rig.Holdfast.Start(); err != nil {
		return err
	}
	_, err := d.rig.Holdfast.Await(ctx, "reconnected", patience, func(s *holdfast.Status) error {
		return errors.Join(s.Lists(), s.Quiet(rig.Node))
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	s, err := d.rig.Settle(ctx, patience) // what comes late counts as well
	if err == nil {
		d.starts = append(d.starts, start{settled: took, sent: s.Sent()})
	}
	return err
}

// measure takes the last figures.
func (d *demo) measure(ctx context.Context) (err error) {
	if d.after, err = d.rig.Moment(ctx); err != nil {
		return err
	}
	return d.measureMemory()
}

func (d *demo) measureMemory() error {
	h, err1 := d.rig.Holdfast.Usage()
	e, err2 := d.rig.Envoy.Usage()
	d.memory = append(d.memory, memory{h, e})
	return errors.Join(err1, err2)
}

func (d *demo) plainHost() string {
	for _, h := range d.hosts {
		if !h.TLS {
			return h.FQDN
		}
	}
	return d.hosts[0].FQDN
}

func pause(ctx context.Context, t time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, max(0, t))
	defer cancel()
	<-ctx.Done()
}
