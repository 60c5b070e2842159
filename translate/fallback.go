package translate

import (
	"slices"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// The field of RouteConfiguration that holds virtual hosts.
const fieldVirtualHosts = 2

// fallback makes the RouteConfiguration of the wildcard hosts and the default
// host, and the scope that the fallback filter leads to. Both are there even
// when no such host is: a client that gets no scope at all waits for ever.
func (x *Rules) fallback(r *index.Reader) {
	r.Emit(index.Draft{
		Type: typeScope, Name: nameFallback, Body: scope(nameFallback),
		Refs: []index.ResourceKey{resourceKey(typeRoutes, nameFallback)},
	})
	body := marshal(scopedConfiguration(nameFallback))
	var clusters []string
	var sources []index.ObjectKey
	for _, f := range r.Facts(factWildcard, index.NeedMonotone, kinds.HTTPProxy, kinds.Ingress) {
		w := f.Value.(*wildcardFact)
		body = appendField(body, fieldVirtualHosts, w.virtualHost)
		clusters = append(clusters, w.clusters...)
		sources = append(sources, w.sources...)
	}
	slices.Sort(clusters)
	r.Emit(index.Draft{
		Type: typeRoutes, Name: nameFallback, Body: body, ClosedWorld: true,
		Refs: keys(typeCluster, slices.Compact(clusters)), Sources: sources,
	})
}
