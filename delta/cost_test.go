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

// edge is a client of n hosts with a service each. It has everything, or it is
// frozen: it answers nothing any more while everything has changed.
func edge(n int, frozen bool) *client {
	c := newClient(indextest.New())
	list := func(kind, each string, v int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "list %s @%d", kind, v)
		for i := range n {
			b.WriteString("; " + strings.ReplaceAll(each, "#", fmt.Sprint(i)))
		}
		return b.String()
	}
	c.ix.Apply(index.Cause{}, indextest.Changes(strings.Join([]string{
		list("host", "h# svc=s# @5", 10), list("svc", "s# @5", 10), list("slice", "e# of=s# addr=1 @5", 10), "list path @10", "list cert @10",
	}, "\n"))...)
	c.connect(c.ix)
	for _, url := range []string{delta.Cluster, delta.Listener, delta.ScopedRoutes} {
		c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url})
	}
	for range 10 {
		c.subscribe()
		for url := range c.flying {
			c.ack(url)
		}
	}
	c.tick(time.Second)
	if frozen {
		c.ix.Apply(index.Cause{}, indextest.Changes(list("host", "h# svc=s#,t# @11", 20)+"\n"+list("svc", "t# @12", 20)+"\n"+list("slice", "x# of=t# addr=1 @12", 20))...)
		c.advance()
	}
	return c
}

// advances gives the time that one change takes.
func advances(c *client, times int, version *int) time.Duration {
	var spent time.Duration
	for range times {
		*version++
		c.ix.Apply(index.Cause{}, indextest.Change(fmt.Sprintf("slice e7 of=s7 addr=%d @%d", *version, *version)))
		snap := c.ix.Snapshot()
		begin := time.Now()
		out := c.stream.Advance(c.now, snap)
		spent += time.Since(begin)
		c.took(out)
		if c.flying[delta.Endpoints] != nil && len(out) > 0 {
			c.ack(delta.Endpoints)
		}
	}
	return spent / time.Duration(times)
}

// What one change costs a stream doesn't depend on how many resources there are, nor
// on how many of them are withheld.
func TestCostOfOneChange(t *testing.T) {
	const small, large = 40, 4000
	for _, frozen := range []bool{false, true} {
		version := 1000
		best := func(c *client) time.Duration {
			least := time.Hour
			for range 5 {
				least = min(least, advances(c, 40, &version))
			}
			return least
		}
		little, much := edge(small, frozen), edge(large, frozen)
		few, many := best(little), best(much)
		tooMuch := func() bool { return many > 15*few+25*time.Microsecond }
		for tries := 0; tooMuch() && tries < 10; tries++ { // the machine may be busy
			few, many = best(little), best(much)
		}
		t.Logf("frozen %v: %v at %d hosts, %v at %d", frozen, few, small, many, large)
		if tooMuch() {
			t.Errorf("frozen %v: one change costs %v at %d hosts and %v at %d", frozen, few, small, many, large)
		}
	}
}

func BenchmarkAdvance(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, version := edge(n, false), 1000
			b.ResetTimer()
			b.ReportMetric(float64(advances(c, b.N, &version).Nanoseconds()), "ns/advance")
		})
	}
}

// BenchmarkReconnect is a client of n hosts that comes back with everything.
func BenchmarkReconnect(b *testing.B) {
	c := edge(10_000, false)
	for b.Loop() {
		c.connect(c.ix)
		for url := range c.holds {
			req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, InitialResourceVersions: c.versions(url)}
			if url == delta.Endpoints || url == delta.RouteConfiguration || url == delta.Secret {
				for name := range c.holds[url] {
					req.ResourceNamesSubscribe = append(req.ResourceNamesSubscribe, name)
				}
			}
			if out := c.request(req); len(out) > 0 {
				b.Fatal("something was sent")
			}
		}
	}
}
