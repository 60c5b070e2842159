package kube

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

// Gate is a proxy in front of an API server that misbehaves on demand, for one
// resource at a time: the rest passes unchanged. Its certificate is nobody's.
//
// A "read" is a list, or a watch that begins with one (sendInitialEvents).
type Gate struct {
	server  *http.Server
	address string
	proxy   *httputil.ReverseProxy
	serving sync.WaitGroup

	mu     sync.Mutex
	faults map[string]*fault // by resource, plural
	reads  map[string]int
	// expired counts the answers that say 410.
	expired int
	// running requests' ends, by resource.
	running map[string]map[*call]context.CancelFunc
}

type call struct {
	watch bool
	// orderly: its answer ends as if the API server had ended it, not broken.
	orderly atomic.Bool
}

// fault is what a resource suffers. Immutable but for the closing of release.
type fault struct {
	release  chan struct{} // reads wait until it is closed, if not nil
	status   int           // all its requests get this status, if not 0
	cutAfter int64         // responses to reads end after so many bytes, if not 0
	stalled  bool          // nothing more of any answer until release is closed
	delay    time.Duration // each request, and each piece of an answer, is so late
}

// OpenGate starts a Gate in front of a cluster.
func OpenGate(k *Cluster) (*Gate, error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(fixture.New(fixture.Options{}).Certificate("gate.test"))
	if err != nil {
		return nil, err
	}
	g := &Gate{
		address: "https://" + l.Addr().String(), faults: map[string]*fault{}, reads: map[string]int{},
		running: map[string]map[*call]context.CancelFunc{},
	}
	quiet := log.New(io.Discard, "", 0) // cut responses are no news
	g.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "https", Host: k.Address.String()}) },
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true},
		FlushInterval: -1, // each watch event at once
		ErrorLog:      quiet,
	}
	g.server = &http.Server{Handler: g, ErrorLog: quiet, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	g.serving.Go(func() { _ = g.server.ServeTLS(l, "", "") }) // ends by Close alone
	return g, nil
}

// Address is the Gate's URL.
func (g *Gate) Address() string { return g.address }

// Close ends the Gate and all that passes through it.
func (g *Gate) Close() error {
	err := g.server.Close()
	g.serving.Wait()
	return err
}

// Hold makes reads of a resource wait until Pass.
func (g *Gate) Hold(resource string) { g.set(resource, &fault{release: make(chan struct{})}) }

// Refuse answers all requests for a resource with a status.
func (g *Gate) Refuse(resource string, status int) { g.set(resource, &fault{status: status}) }

// CutAfter breaks the connection of each read after so many bytes of its answer.
func (g *Gate) CutAfter(resource string, bytes int64) { g.set(resource, &fault{cutAfter: bytes}) }

// Stall lets no more of any answer through until Pass, watches that run now
// included: what is behind the Gate lags.
func (g *Gate) Stall(resource string) {
	g.set(resource, &fault{release: make(chan struct{}), stalled: true})
}

// Delay makes every request, and every piece of its answer, so late.
func (g *Gate) Delay(resource string, d time.Duration) { g.set(resource, &fault{delay: d}) }

// Pass ends a resource's fault.
func (g *Gate) Pass(resource string) { g.set(resource, nil) }

// PassAll ends all faults.
func (g *Gate) PassAll() {
	g.mu.Lock()
	faulty := slices.Collect(maps.Keys(g.faults))
	g.mu.Unlock()
	for _, resource := range faulty {
		g.Pass(resource)
	}
}

func (g *Gate) set(resource string, f *fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if old := g.faults[resource]; old != nil && old.release != nil {
		close(old.release)
	}
	if f == nil {
		delete(g.faults, resource)
		return
	}
	g.faults[resource] = f
}

// DropWatches breaks the watches of a resource that run now.
func (g *Gate) DropWatches(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c, cancel := range g.running[resource] {
		if c.watch {
			cancel()
		}
	}
}

// EndWatches ends the watches of a resource that run now in order, as an API
// server does from time to time: the client asks again from where it was.
func (g *Gate) EndWatches(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c, cancel := range g.running[resource] {
		if c.watch {
			c.orderly.Store(true)
			cancel()
		}
	}
}

// Reads counts the reads of a resource that were asked for.
func (g *Gate) Reads(resource string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reads[resource]
}

// Expired counts the watches that were told that their revision is gone (410).
func (g *Gate) Expired() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.expired
}

// ServeHTTP passes a request on, or does what its resource suffers.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := resourceOf(r.URL.Path)
	query := r.URL.Query()
	watch := query.Get("watch") == "true" || query.Get("watch") == "1"
	read := !watch || query.Get("sendInitialEvents") == "true"
	c, f, ctx, done := g.begin(r.Context(), resource, watch, read)
	defer done()
	defer func() {
		if p := recover(); p != nil && !c.orderly.Load() {
			panic(p)
		}
	}()
	switch {
	case f == nil:
	case f.status != 0:
		http.Error(w, "refused by the test", f.status)
		return
	case f.release != nil && read:
		select {
		case <-f.release:
		case <-ctx.Done():
			panic(http.ErrAbortHandler)
		}
	case f.cutAfter > 0 && read:
		w = &cutter{ResponseWriter: w, left: f.cutAfter}
	case f.delay > 0:
		f.wait(ctx)
	}
	w = &valve{ResponseWriter: w, ctx: ctx, watch: watch, gate: g, resource: resource}
	g.proxy.ServeHTTP(w, r.WithContext(ctx))
}

func (g *Gate) begin(ctx context.Context, resource string, watch, read bool) (*call, *fault, context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	c := &call{watch: watch}
	g.mu.Lock()
	defer g.mu.Unlock()
	if read {
		g.reads[resource]++
	}
	if g.running[resource] == nil {
		g.running[resource] = map[*call]context.CancelFunc{}
	}
	g.running[resource][c] = cancel
	return c, g.faults[resource], ctx, func() {
		cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.running[resource], c)
	}
}

func (g *Gate) faultOf(resource string) *fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.faults[resource]
}

// wait is how a fault makes an answer late.
func (f *fault) wait(ctx context.Context) {
	switch {
	case f == nil:
	case f.stalled:
		select {
		case <-f.release:
		case <-ctx.Done():
		}
	case f.delay > 0:
		t := time.NewTimer(f.delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// gone is the reason in an ERROR event with code 410, in JSON and in protobuf alike.
var gone = []byte(metav1.StatusReasonExpired)

// valve lets each piece of an answer through when the resource's fault, as it is
// at that moment, allows it.
type valve struct {
	http.ResponseWriter
	ctx      context.Context
	watch    bool
	gate     *Gate
	resource string
}

// Unwrap lets the proxy flush through.
func (v *valve) Unwrap() http.ResponseWriter { return v.ResponseWriter }

func (v *valve) Write(p []byte) (int, error) {
	if v.watch && bytes.Contains(p, gone) {
		v.gate.mu.Lock()
		v.gate.expired++
		v.gate.mu.Unlock()
	}
	v.gate.faultOf(v.resource).wait(v.ctx)
	return v.ResponseWriter.Write(p)
}

// resourceOf gives the plural in a collection's path, or "".
//
//	/api/v1/services
//	/apis/discovery.k8s.io/v1/namespaces/a/endpointslices
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return ""
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return parts[0]
}

// cutter aborts the response when enough was written.
type cutter struct {
	http.ResponseWriter
	left int64
}

// Unwrap lets the proxy flush through.
func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		_ = http.NewResponseController(c.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}
