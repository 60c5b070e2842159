package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/envoy"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/proc"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// The two ways to find certificates, side by side, at 3,407 TLS hosts with one
// certificate each. `make e2e TESTFLAGS='-run TestTLSModes -v'` prints the table of
// docs/tls.md. What a change costs is Envoy's main thread, the least of three: it
// is the time that the thread has run, but on a busy machine it runs slower.

// limitTLSHost is what a new TLS host may cost Envoy's main thread on demand.
const limitTLSHost = 10 * time.Millisecond

func TestTLSModes(t *testing.T) {
	needEnvoy(t)
	var table []tlsFigures
	for _, mode := range []string{"chains", "on-demand"} {
		t.Run(mode, func(t *testing.T) { table = append(table, tlsMode(t, mode)) })
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tready\tmain thread\tEnvoy\tall visited\tidle\tadd a host\tserved\tbytes\tbelow a wildcard\tserved\tbytes\trotate\trefusal")
	for _, f := range table {
		fmt.Fprintf(w, "%s\t%v\t%v\t%d MB\t%d MB\t%v\t%v\t%v\t%d\t%v\t%v\t%d\t%v\t%v\n", f.mode, round(f.ready), round(f.start), f.rss>>20, f.visited>>20,
			round(f.idle), round(f.add.least), round(f.add.served), f.add.bytes, round(f.covered.least), round(f.covered.served), f.covered.bytes, round(f.rotate.least), round(f.refusal))
	}
	w.Flush()
	t.Logf("%d TLS hosts:\n%s", fixture.Default, &b)
}

func round(d time.Duration) time.Duration {
	if d < 20*time.Millisecond {
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Millisecond)
}

// tlsFigures are what one mode comes to.
type tlsFigures struct {
	mode         string
	ready, start time.Duration // start: of Envoy's main thread until all is quiet
	rss, visited int64
	idle         time.Duration // of Envoy's main thread, in the time that a change is given
	add, rotate  tlsChange
	covered      tlsChange     // add, below a wildcard host; on demand only
	refusal      time.Duration // of an unknown name, the median
}

// tlsChange is what one change costs: the median of several, and the least.
type tlsChange struct {
	main, least, served time.Duration
	bytes               uint64
}

func tlsMode(t *testing.T, mode string) tlsFigures {
	w := tlsWorld(t, mode, fixture.Default)
	f := tlsFigures{mode: mode, ready: w.first.ready, rss: w.first.envoy.RSS, start: w.mainThread(t)}
	unvisited(t, w)
	u, err := w.Envoy.Usage()
	if err != nil {
		t.Fatal(err)
	}
	f.visited = u.RSS
	f.idle = w.measure(t, func(int) func() error { return func() error { return nil } }).main
	f.add = addTLSHosts(t, w)
	f.rotate = rotate(t, w)
	f.refusal = refusals(t, w)
	if mode == "on-demand" {
		if f.add.least-f.idle > limitTLSHost { // the others may have been disturbed
			t.Errorf("a new TLS host cost Envoy's main thread %v, more than %v", f.add.least, limitTLSHost)
		}
		flood(t, w)
		f.covered = belowWildcard(t, w)
	}
	return f
}

// belowWildcard measures a new host when a wildcard host covers all hosts, which is
// where the public listener does change.
func belowWildcard(t *testing.T, w *world) tlsChange {
	wild := w.named("*.example")
	w.write(t, &wild)
	w.certified(t, "any.example", "*.example")
	return addTLSHosts(t, w)
}

// Names that are written otherwise, lie below a wildcard host, or are none.
func TestTLSOnDemandNames(t *testing.T) {
	needEnvoy(t)
	w := tlsWorld(t, "on-demand", 20)
	t.Run("wildcard", func(t *testing.T) { underWildcard(t, w) })
	t.Run("hostile", func(t *testing.T) { hostileNames(t, w) })
}

// tlsWorld is a world of n TLS hosts only, with an Envoy that nobody has asked yet.
func tlsWorld(t *testing.T, mode string, n int) *world {
	t.Helper()
	r, err := ownRig(fmt.Sprintf("tls-%s-%d", mode, n), rig.Options{IP: netip.MustParseAddr("127.0.0.1"), TLSPercent: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	r.Holdfast.Config.Args = []string{"--tls=" + mode}
	w := &world{Rig: r, next: n}
	if w.folder, err = r.Objects(); err != nil {
		t.Fatal(err)
	}
	if w.hosts, err = fixture.WriteAll(w.folder, r.Generator, n); err != nil {
		t.Fatal(err)
	}
	w.put = func(_ context.Context, h *fixture.Host) error { return fixture.WriteHost(w.folder, h) }
	w.remove = func(_ context.Context, h *fixture.Host) error { return fixture.RemoveHost(w.folder, h) }
	if err := w.begin(t.Context(), "--source=dir:"+w.folder); err != nil {
		t.Fatal(err)
	}
	w.targets = rig.Targets(w.hosts) // not before: begin asks a tenth of them
	return w
}

// unvisited: while holdfast is away every host is served, though Envoy has never
// seen a handshake for it.
func unvisited(t *testing.T, w *world) {
	t.Helper()
	if err := w.Holdfast.Kill(); err != nil {
		t.Fatal(err)
	}
	c := w.Client(nil)
	for i := range w.hosts {
		c.Targets = append(c.Targets, rig.Targets(w.hosts[i : i+1])[0])
	}
	c.Concurrency, c.Once, c.FreshPercent = 8, true, 100
	if r := load.Start(t.Context(), c).Wait(); r.Failed > 0 || r.Requests < fixture.Default {
		t.Errorf("not every host is served while holdfast is away: %v", r)
	}
	if err := w.Holdfast.Start(); err != nil {
		t.Fatal(err)
	}
	if s := w.settle(t).Sent(); s.Resources+s.Removed > 0 {
		t.Errorf("back again, holdfast sent %+v", s)
	}
}

// addTLSHosts adds some, one by one; connections to others stay.
func addTLSHosts(t *testing.T, w *world) tlsChange {
	t.Helper()
	kept := w.keptConnections(t)
	out := w.measure(t, func(int) func() error {
		h := w.freshHost(true)
		w.write(t, &h)
		// A handshake for a host that is not there is work for Envoy's main thread as
		// well, so it is asked for only once it must be there.
		return func() error { return w.answers(&h) }
	})
	h := w.freshHost(true)
	watch := w.watch(t, &h)
	defer watch.Stop()
	until(t, watch, load.NoHandshake)
	began := time.Now()
	w.write(t, &h)
	until(t, watch, "200")
	out.served = time.Since(began)
	if got := load.Outcomes(watch.Stop()); got != load.NoHandshake+" 200" {
		t.Errorf("%s: %s", h.FQDN, got)
	}
	if drained := kept.drained(t); drained > 0 {
		t.Errorf("%d of %d kept connections were drained", drained, len(kept))
	}
	return out
}

// answers asks a host once.
func (w *world) answers(h *fixture.Host) error {
	c := w.Client(rig.Targets([]fixture.Host{*h})[:1])
	c.Once = true
	if r := load.Start(context.Background(), c).Wait(); r.Failed > 0 || r.Requests == 0 {
		return fmt.Errorf("%v", r)
	}
	return nil
}

func rotate(t *testing.T, w *world) tlsChange {
	t.Helper()
	return w.measure(t, func(i int) func() error {
		h := w.hosts[100+i]
		certificate, key := w.Generator.Certificate(h.FQDN, "rotated."+h.FQDN)
		h.Objects = slices.Clone(h.Objects)
		for j, o := range h.Objects {
			if o.GetObjectKind().GroupVersionKind().Kind == "Secret" {
				h.Objects[j] = fixture.TLSSecret(h.Namespace, h.Name, certificate, key)
			}
		}
		w.write(t, &h)
		return func() error {
			state, err := w.handshake(h.FQDN)
			if err == nil && len(state.PeerCertificates[0].DNSNames) != 2 {
				err = errors.New("it has the old certificate")
			}
			return err
		}
	})
}

// measure makes a change several times and gives what it costs Envoy's main thread
// until all is quiet, and the bytes that were sent: the median. Each time it checks
// then that the change is there.
func (w *world) measure(t *testing.T, change func(i int) (check func() error)) tlsChange {
	t.Helper()
	var cost []time.Duration
	var bytes []uint64
	sent := w.settle(t).Sent()
	for i := range 3 {
		before := w.mainThread(t)
		check := change(i)
		now := w.settle(t).Sent()
		cost = append(cost, w.mainThread(t)-before)
		bytes, sent = append(bytes, now.Minus(sent).Bytes), now
		if err := check(); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(cost)
	slices.Sort(bytes)
	return tlsChange{main: cost[len(cost)/2], least: cost[0], bytes: bytes[len(bytes)/2]}
}

func (w *world) mainThread(t *testing.T) time.Duration {
	t.Helper()
	d, err := w.Envoy.MainThread()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// refusals: an unknown name is refused at once, by an alert rather than silence.
func refusals(t *testing.T, w *world) time.Duration {
	t.Helper()
	var took []time.Duration
	for i := range 21 {
		began := time.Now()
		if _, err := w.handshake(fmt.Sprintf("nobody-%d.example", i)); err == nil {
			t.Error("an unknown name has a certificate")
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if slowest := took[len(took)-1]; slowest > time.Second {
		t.Errorf("an unknown name was refused after %v", slowest)
	}
	return took[len(took)/2]
}

// handshake makes a connection for a server name and closes it.
func (w *world) handshake(name string) (tls.ConnectionState, error) {
	c, err := w.dialTLS(name)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer c.Close()
	return c.ConnectionState(), nil
}

func (w *world) dialTLS(name string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{ServerName: name, RootCAs: w.Client(nil).Roots, NextProtos: []string{"http/1.1"}}}
	c, err := d.DialContext(ctx, "tcp", w.HTTPS.String())
	if err != nil {
		return nil, err
	}
	return c.(*tls.Conn), nil
}

// held is what a flood must leave as it was.
type held struct {
	subscriptions int    // holdfast's view
	active        uint64 // Envoy's
	secrets       int    // Envoy's
}

func (w *world) held(t *testing.T) held {
	t.Helper()
	var h held
	s := w.settle(t)
	for _, x := range s.Stream(rig.Node).Types {
		if strings.HasSuffix(x.Type, ".Secret") {
			h.subscriptions = x.Subscribed
		}
	}
	stats, err := w.Envoy.Stats(t.Context(), `on_demand_secret\.cert_active$`)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range stats {
		h.active += n
	}
	h.secrets = len(w.moment(t).Holdings[envoy.Secrets])
	return h
}

// floodSize is how many unknown names are asked for.
const floodSize = 10000

// flood: unknown server names leave nothing behind, and nobody else notices.
func flood(t *testing.T, w *world) {
	t.Helper()
	before := w.held(t)
	traffic := w.background(t)
	began := time.Now()
	names := make(chan string)
	const workers = 16
	done := make(chan int, workers)
	for range workers {
		go func() {
			served := 0
			for name := range names {
				if _, err := w.handshake(name); err == nil {
					served++
				}
			}
			done <- served
		}()
	}
	for i := range floodSize {
		names <- fmt.Sprintf("flood-%d.example", i)
	}
	close(names)
	for range workers {
		if n := <-done; n > 0 {
			t.Errorf("%d unknown names have a certificate", n)
		}
	}
	t.Logf("%d unknown names refused in %v", floodSize, time.Since(began).Round(time.Millisecond))
	unharmed(t, traffic)
	if after := w.held(t); after != before {
		t.Errorf("a flood left %+v, it was %+v", after, before)
	}
}

// kept are connections that nothing may drain, by host.
type kept map[string]*tls.Conn

func (w *world) keptConnections(t *testing.T) kept {
	t.Helper()
	out := kept{}
	for i := range 20 {
		name := w.hosts[i*100].FQDN
		c, err := w.dialTLS(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		out[name] = c
	}
	out.drained(t)
	return out
}

// drained counts those that Envoy closes, or says it will close.
func (k kept) drained(t *testing.T) int {
	t.Helper()
	n := 0
	for name, c := range k {
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+name+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := request.Write(c); err != nil {
			n++
			continue
		}
		answer, err := http.ReadResponse(bufio.NewReader(c), request)
		if err != nil || answer.Close {
			n++
			continue
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			n++
		}
		_ = answer.Body.Close()
	}
	return n
}

// underWildcard: a name below a wildcard host has its certificate, until a host of
// that name comes, and again when that goes. How the name is written doesn't matter.
func underWildcard(t *testing.T, w *world) {
	wild, one := w.named("*.wild.example"), w.named("one.wild.example")
	w.write(t, &wild)
	w.certified(t, "any.wild.example", "*.wild.example")
	w.certified(t, "Any.WILD.example", "*.wild.example")
	w.certified(t, "one.wild.example", "*.wild.example")
	w.certified(t, strings.ToUpper(w.hosts[5].FQDN), w.hosts[5].FQDN)
	w.write(t, &one)
	w.certified(t, "one.wild.example", "one.wild.example")
	w.certified(t, "ONE.wild.example", "one.wild.example")
	w.certified(t, "any.wild.example", "*.wild.example")
	if err := w.remove(t.Context(), &one); err != nil {
		t.Fatal(err)
	}
	w.certified(t, "one.wild.example", "*.wild.example")
	if err := w.remove(t.Context(), &wild); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"any.wild.example", "one.wild.example"} {
		eventually(t, name+" refused", func() error {
			if _, err := w.handshake(name); err == nil {
				return errors.New("it has a certificate")
			}
			return nil
		})
	}
}

// named gives a fresh TLS host with another fqdn.
func (w *world) named(fqdn string) fixture.Host {
	h := w.freshHost(true)
	certificate, key := w.Generator.Certificate(fqdn)
	h.FQDN = fqdn
	proxyOf(&h).Spec.VirtualHost.Fqdn = fqdn
	for i, o := range h.Objects {
		if o.GetObjectKind().GroupVersionKind().Kind == "Secret" {
			h.Objects[i] = fixture.TLSSecret(h.Namespace, h.Name, certificate, key)
		}
	}
	return h
}

func (w *world) write(t *testing.T, h *fixture.Host) {
	t.Helper()
	if err := w.put(t.Context(), h); err != nil {
		t.Fatal(err)
	}
}

// certified waits until a handshake for the name is given the certificate.
func (w *world) certified(t *testing.T, name, want string) {
	t.Helper()
	eventually(t, name+" has the certificate of "+want, func() error {
		state, err := w.handshake(name)
		if err != nil {
			return err
		}
		if got := state.PeerCertificates[0].DNSNames[0]; got != want {
			return fmt.Errorf("it has that of %s", got)
		}
		return nil
	})
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := proc.Until(t.Context(), what, patience, func(context.Context) error { return check() }); err != nil {
		t.Error(err)
	}
}

// hostileNames: whatever a client sends as a server name, holdfast's stream goes on.
func hostileNames(t *testing.T, w *world) {
	before := w.held(t)
	for _, name := range []string{
		"\xff\xfe.example", "caf\xc3\xa9.example", "a/b", "chain/" + w.hosts[0].FQDN, "no-server-name/", ".", "*", "*.example",
		strings.Repeat("a", 250), strings.Repeat("a.", 120) + "a", "a b", "a\r\nx: y", "*" + w.hosts[0].FQDN,
	} {
		began := time.Now()
		if _, err := w.handshake(name); err == nil {
			t.Errorf("%q has a certificate", name)
		} else {
			t.Logf("%q: %v after %v", name, err, time.Since(began).Round(time.Millisecond))
		}
	}
	h := w.freshHost(true)
	w.write(t, &h)
	eventually(t, h.FQDN, func() error { return w.answers(&h) })
	if err := w.remove(t.Context(), &h); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Holdfast.Logged("envoy disconnected"); err != nil || n > 0 {
		t.Errorf("the stream ended %d times (%v)", n, err)
	}
	if after := w.held(t); after != before {
		t.Errorf("hostile names left %+v, it was %+v", after, before)
	}
}
