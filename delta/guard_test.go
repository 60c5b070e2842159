package delta_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// guarded is a client with hosts that are certified or not, and a guard at half.
func guarded(t *testing.T, hosts int, tls bool) *play {
	t.Helper()
	p := &play{t: t, client: newClient(indextest.New())}
	p.opts.Guard = delta.Guard{Share: 0.5, Hold: 10 * time.Minute}
	apply(p, hostList(hosts, tls, 10))
	p.connect(p.ix)
	begin(p)
	if got := len(p.holds[delta.ScopedRoutes]); got != hosts {
		t.Fatalf("the client holds %d scopes, want %d", got, hosts)
	}
	p.tick(time.Second)
	return p
}

// hostList lists every kind, with that many hosts.
func hostList(hosts int, tls bool, version int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "list host @%d", version)
	for i := range hosts {
		cert := ""
		if tls {
			cert = fmt.Sprintf(" cert=c%d", i)
		}
		fmt.Fprintf(&b, "; h%d svc=s%d%s @5", i, i, cert)
	}
	fmt.Fprintf(&b, "\nlist path @%d\nlist svc @%d", version, version)
	for i := range hosts {
		fmt.Fprintf(&b, "; s%d @5", i)
	}
	fmt.Fprintf(&b, "\nlist slice @%d", version)
	for i := range hosts {
		fmt.Fprintf(&b, "; e%d of=s%d addr=%d @5", i, i, i)
	}
	fmt.Fprintf(&b, "\nlist cert @%d", version)
	for i := range hosts {
		fmt.Fprintf(&b, "; c%d @5", i)
	}
	return b.String()
}

func apply(p *play, text string) { p.ix.Apply(index.Cause{}, indextest.Changes(text)...) }

// begin subscribes to everything, telling what is held, and answers until it is quiet.
func begin(p *play) {
	for _, url := range []string{delta.Cluster, delta.Listener, delta.ScopedRoutes} {
		p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, InitialResourceVersions: p.versions(url)})
	}
	for _, url := range []string{delta.Endpoints, delta.Secret, delta.RouteConfiguration} {
		if held := p.versions(url); len(held) > 0 {
			names := make([]string, 0, len(held))
			for n := range held {
				names = append(names, n)
			}
			p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: names, InitialResourceVersions: held})
		}
	}
	p.settle(nil)
}

func change(p *play, text string) {
	apply(p, text)
	p.advance()
	p.settle(nil)
}

func lose(from, to, version int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, "delete host h%d @%d\n", i, version+i)
	}
	return b.String()
}

func scopes(p *play) int { return len(p.holds[delta.ScopedRoutes]) }

func TestGuardLetsFewGo(t *testing.T) {
	p := guarded(t, 120, false)
	change(p, lose(0, 60, 100))
	if scopes(p) != 60 {
		t.Errorf("the client holds %d scopes, want 60: half of them may go", scopes(p))
	}
}

func TestGuardHoldsMassRemoval(t *testing.T) {
	p := guarded(t, 120, false)
	change(p, lose(0, 119, 100))
	p.tick(9 * time.Minute)
	p.settle(nil)
	if scopes(p) != 120 || len(p.holds[delta.Cluster]) != 120 || len(p.holds[delta.RouteConfiguration]) != 120 {
		t.Errorf("the client lost some: %d scopes, %d clusters", scopes(p), len(p.holds[delta.Cluster]))
	}
	if got := p.stream.Guarded(); got != 119 {
		t.Errorf("%d guarded, want 119", got)
	}
	if st := statusLines(p.stream.Status(), p.now); !strings.Contains(st, "SRDS remove h0: held by the removal guard: would take 119 of 120 ScopedRouteConfigurations from this client at once") {
		t.Errorf("status does not say why:\n%s", st)
	}
}

// Losses within a minute add up, however small each is.
func TestGuardAddsUp(t *testing.T) {
	p := guarded(t, 120, false)
	for i := range 119 {
		change(p, lose(i, i+1, 100))
	}
	if scopes(p) != 60 {
		t.Errorf("the client holds %d scopes, want 60", scopes(p))
	}
}

func TestGuardForgetsAfterAMinute(t *testing.T) {
	p := guarded(t, 200, false)
	change(p, lose(0, 90, 100))
	p.tick(2 * time.Minute)
	p.settle(nil)
	change(p, lose(90, 140, 100))
	if scopes(p) != 60 {
		t.Errorf("the client holds %d scopes, want 60", scopes(p))
	}
}

func TestGuardEndsWhenObjectsComeBack(t *testing.T) {
	p := guarded(t, 120, false)
	change(p, lose(0, 119, 100))
	change(p, hostList(120, false, 1000))
	if scopes(p) != 120 || p.stream.Guarded() != 0 {
		t.Errorf("%d scopes, %d guarded", scopes(p), p.stream.Guarded())
	}
	p.tick(time.Hour)
	p.settle(nil)
	if scopes(p) != 120 {
		t.Errorf("%d scopes after the hold", scopes(p))
	}
}

func TestGuardReleasedByHand(t *testing.T) {
	p := guarded(t, 120, false)
	change(p, lose(0, 119, 100))
	p.took(p.stream.Release(p.now))
	p.settle(nil)
	p.tick(2 * time.Second)
	p.settle(nil)
	if scopes(p) != 1 || len(p.holds[delta.Cluster]) != 1 {
		t.Errorf("%d scopes and %d clusters, want 1", scopes(p), len(p.holds[delta.Cluster]))
	}
}

func TestGuardHoldPasses(t *testing.T) {
	p := guarded(t, 120, false)
	change(p, lose(0, 119, 100))
	p.tick(10 * time.Minute)
	p.settle(nil)
	p.tick(2 * time.Second)
	p.settle(nil)
	if scopes(p) != 1 || len(p.holds[delta.Cluster]) != 1 {
		t.Errorf("%d scopes and %d clusters, want 1", scopes(p), len(p.holds[delta.Cluster]))
	}
}

// A listener is one resource with many filter chains: its shrinking counts by them,
// also when the client has brought the version along from before a restart.
func TestGuardHoldsShrinkingListener(t *testing.T) {
	p := guarded(t, 120, true)
	https := p.holds[delta.Listener]["https"].body
	if https == "" {
		t.Fatalf("no https listener: %v", p.holds[delta.Listener])
	}
	change(p, lose(0, 119, 100))
	if got := p.holds[delta.Listener]["https"].body; got != https {
		t.Errorf("the listener shrank to %q", got)
	}

	p.ix.Leave(p.client)
	ix := indextest.New()
	ix.Apply(index.Cause{}, indextest.Changes(hostList(1, true, 1000))...)
	p.connect(ix)
	begin(p)
	p.tick(time.Second)
	p.settle(nil)
	if got := p.holds[delta.Listener]["https"].body; got != https || scopes(p) != 120 {
		t.Errorf("after a restart the listener shrank to %q, %d scopes", got, scopes(p))
	}
}

// Routes that all lose their clusters (every Service was deleted) count as well.
func TestGuardHoldsRoutesWithoutClusters(t *testing.T) {
	p := guarded(t, 120, false)
	route := p.holds[delta.RouteConfiguration]["h7"].body
	change(p, "list svc @2000")
	if got := p.holds[delta.RouteConfiguration]["h7"].body; got != route {
		t.Errorf("the route became %q", got)
	}
}

func TestGuardOff(t *testing.T) {
	p := guarded(t, 120, false)
	p.opts.Guard = delta.Guard{}
	p.connect(p.ix)
	begin(p)
	p.tick(time.Second)
	change(p, lose(0, 120, 100))
	if scopes(p) != 0 {
		t.Errorf("%d scopes", scopes(p))
	}
}

// While something is withheld, what few there are of another type stay as well.
func TestGuardHoldsSmallTypesToo(t *testing.T) {
	p := guarded(t, 120, false)
	change(p, "host t0 svc=s0 cert=c0 @50")
	https := p.holds[delta.Listener]["https"].body
	if https == "" {
		t.Fatal("no https listener")
	}
	p.tick(2 * time.Minute)
	p.settle(nil)
	change(p, lose(0, 119, 100))
	change(p, "delete host t0 @300")
	if got := p.holds[delta.Listener]["https"].body; got != https {
		t.Errorf("the listener became %q", got)
	}
}
