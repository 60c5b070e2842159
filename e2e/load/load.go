// Package load sends requests to a proxy and counts what comes back.
//
// A Run has a number of workers. Each picks a target at random (the seed makes
// the sequence), sends one request on a kept or a fresh connection, and files
// the answer under an outcome: the status, or what went wrong. Nothing is ever
// sent again: a request that fails is a failed request, as a user would see it.
//
// A Run ends by its context, its number of requests or Stop, whichever is
// first; Stop waits for all workers.
package load

import (
	"context"
	"crypto/x509"
	"math"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Target is a request and what must answer it.
type Target struct {
	Host    string
	Path    string
	Headers map[string]string
	TLS     bool
	Status  int    // 200 when 0
	Backend string // any when empty
}

// Config of a Run.
type Config struct {
	HTTP, HTTPS netip.AddrPort
	Roots       *x509.CertPool // for HTTPS
	Targets     []Target
	Seed        uint64
	Concurrency int
	// Rate in requests per second over all workers; 0 is as fast as can be.
	Rate float64
	// Requests ends the run after so many; 0 is no end.
	Requests int64
	// Once asks each target once, instead of random ones without an end.
	Once bool
	// FreshPercent of the requests use a connection of their own.
	FreshPercent int
	// Timeout of one request.
	Timeout time.Duration
}

// Run is a load in progress.
type Run struct {
	config  Config
	cancel  context.CancelFunc
	workers sync.WaitGroup
	sent    atomic.Int64
	tally   tally
}

// Start begins a Run.
func Start(ctx context.Context, c Config) *Run {
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Run{config: c, cancel: cancel, tally: tally{outcomes: map[string]int64{}}}
	for i := range max(1, c.Concurrency) {
		w := &worker{run: r, random: rand.New(rand.NewPCG(c.Seed, uint64(i)))}
		r.workers.Go(func() { w.loop(ctx) })
	}
	return r
}

// Report gives the figures so far.
func (r *Run) Report() Report { return r.tally.report() }

// Wait waits for the run's own end.
func (r *Run) Wait() Report {
	r.workers.Wait()
	r.cancel()
	return r.Report()
}

// Stop ends the run and gives its figures.
func (r *Run) Stop() Report {
	r.cancel()
	return r.Wait()
}

// worker is one client. Only its own goroutine touches it.
type worker struct {
	run    *Run
	random *rand.Rand
	plain  *conn // kept; serves any host
	secure *conn // kept; serves the host that it was opened for
}

func (w *worker) loop(ctx context.Context) {
	defer w.close()
	var pace <-chan time.Time
	if rate := w.run.config.Rate; rate > 0 {
		t := time.NewTicker(time.Duration(float64(max(1, w.run.config.Concurrency)) / rate * float64(time.Second)))
		defer t.Stop()
		pace = t.C
	}
	for ctx.Err() == nil {
		n := w.run.sent.Add(1)
		if n > w.run.limit() {
			return
		}
		target, fresh := w.choose(n)
		began := time.Now()
		o := w.send(ctx, target, fresh)
		if ctx.Err() != nil {
			return // cut short by the end of the run: says nothing
		}
		w.run.tally.add(began, target, o)
		if pace != nil {
			select {
			case <-ctx.Done():
			case <-pace:
			}
		}
	}
}

func (r *Run) limit() int64 {
	switch {
	case r.config.Once:
		return int64(len(r.config.Targets))
	case r.config.Requests > 0:
		return r.config.Requests
	}
	return math.MaxInt64
}

// choose picks the target of request number n. A kept TLS connection stays with
// its host, as a browser's would.
func (w *worker) choose(n int64) (target *Target, fresh bool) {
	c := &w.run.config
	if c.Once {
		target = &c.Targets[n-1]
		return target, target.TLS
	}
	fresh = w.random.IntN(100) < c.FreshPercent
	target = &c.Targets[w.random.IntN(len(c.Targets))]
	if target.TLS && !fresh && w.secure != nil {
		target = w.secure.target
	}
	return target, fresh
}

func (w *worker) send(ctx context.Context, t *Target, fresh bool) outcome {
	slot := &w.plain
	if t.TLS {
		slot = &w.secure
	}
	if fresh {
		slot = new(*conn)
	}
	reused := *slot != nil
	o := exchange(ctx, &w.run.config, t, slot)
	o.reused = reused
	if fresh {
		closeConn(slot)
	}
	return o
}

func (w *worker) close() {
	closeConn(&w.plain)
	closeConn(&w.secure)
}
