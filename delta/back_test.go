package delta

import (
	"fmt"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// A client that is back before the lists are there costs as little as any other
// once they are: nothing of what it brought along is kept, although no kind's
// frontier moves again. (It was kept, and looked through at each removal.)
func TestAClientThatComesBackIsSmallOnceAllIsComplete(t *testing.T) {
	var hosts strings.Builder
	for i := range 300 {
		fmt.Fprintf(&hosts, "; h%d fqdn=f%d svc=s @%d", i, i, i+1)
	}
	lists := []string{"list host @1000" + hosts.String(), "list svc @1000; s port=0 @400", "list path @1000", "list slice @1000", "list cert @1000"}
	fill := func(ix *index.Index) {
		for _, l := range lists {
			ix.Apply(index.Cause{}, indextest.Changes(l)...)
		}
	}
	before := indextest.New()
	fill(before)
	now := time.Unix(1000, 0)
	back := indextest.New()
	s := NewStream(back.Snapshot(), now, Options{})
	for _, url := range []string{ScopedRoutes, RouteConfiguration} {
		req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, InitialResourceVersions: map[string]string{}}
		for r := range before.Snapshot().Resources(url) {
			req.InitialResourceVersions[r.Name] = before.Snapshot().Token(r)
			if url == RouteConfiguration {
				req.ResourceNamesSubscribe = append(req.ResourceNamesSubscribe, r.Name)
			}
		}
		s.Request(now, req)
	}
	for _, l := range lists {
		back.Apply(index.Cause{}, indextest.Changes(l)...)
		s.Advance(now, back.Snapshot())
	}
	for _, url := range []string{ScopedRoutes, RouteConfiguration} {
		sub := s.subs[url]
		if sub.current.count() < 300 || len(sub.others)+len(sub.ahead)+len(sub.withheld) > 0 {
			t.Errorf("%s: %d current, %d others, %d ahead, %d withheld", url, sub.current.count(), len(sub.others), len(sub.ahead), len(sub.withheld))
		}
	}
}
