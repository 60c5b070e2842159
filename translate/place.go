package translate

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/holdfast-xds/holdfast/index"
)

// wildcardFact is the plain virtual host of *.x.y or of the default host, for the
// fallback RouteConfiguration.
type wildcardFact struct {
	virtualHost []byte
	clusters    []string
	sources     []index.ObjectKey
}

// emit gives the rules their places.
func (h *host) emit() {
	rules := arrange(h.routes)
	var plain, secure []*rule
	for i := range rules {
		u := &rules[i]
		u.finish()
		if u.plain {
			plain = append(plain, u)
		}
		if u.secure {
			secure = append(secure, u)
		}
	}
	h.demandClusters(plain, secure)
	switch {
	case len(plain) == 0:
	case isWildcard(h.fqdn):
		h.emitWildcard(plain)
	default:
		h.emitExact(plain)
	}
	if h.secure {
		h.emitSecure(secure)
	}
}

// demandClusters wants those clusters that the placed rules send requests to.
func (h *host) demandClusters(plain, secure []*rule) {
	for _, u := range plain {
		if !u.upgrade {
			h.demandUpstreams(u)
		}
	}
	if h.secure {
		for _, u := range secure {
			h.demandUpstreams(u)
		}
	}
}

func (h *host) demandUpstreams(u *rule) {
	for _, up := range u.upstream {
		h.r.Demand(derivation(formCluster, up.name()), up, hostKinds...)
	}
}

// emitExact makes a RouteConfiguration and the scope that leads to it. It ends in
// a route that matches everything: a miss would make the fallback filter look
// among the wildcard hosts.
func (h *host) emitExact(rules []*rule) {
	rules = collapse(rules)
	routes, clusters := onPlain(rules)
	name := planeHTTP + h.fqdn
	rc := scopedConfiguration(name)
	rc.VirtualHosts = []*routev3.VirtualHost{{Name: h.fqdn, Domains: []string{anyHost}, Routes: append(routes, notFound)}}
	h.emitRoutes(rc, clusters)
	h.emitScope(name)
}

// collapse: when all that a host does is to redirect to HTTPS, the rule that matches
// everything answers for the others, which Envoy need not keep.
func collapse(rules []*rule) []*rule {
	if slices.ContainsFunc(rules, func(u *rule) bool { return !u.upgrade }) {
		return rules
	}
	if i := slices.IndexFunc(rules, func(u *rule) bool { return u.match.everything() }); i >= 0 {
		return rules[i : i+1]
	}
	return rules
}

func (h *host) emitScope(name string) {
	h.r.Emit(index.Draft{
		Type: typeScope, Name: name, Body: scope(name),
		Refs: []index.ResourceKey{resourceKey(typeRoutes, name)}, Sources: h.sources,
	})
}

func (h *host) emitWildcard(rules []*rule) {
	routes, clusters := onPlain(rules)
	v := marshal(&routev3.VirtualHost{Name: h.fqdn, Domains: []string{h.fqdn}, Routes: routes})
	h.r.SetFact(index.Fact{
		Key:    factWildcard + "/" + h.fqdn,
		Value:  &wildcardFact{v, clusters, h.sources},
		Digest: index.DigestOf(v),
	})
}

// emitSecure makes the RouteConfiguration behind the host's filter chain, or, on
// demand, behind its scope. Both are chosen by SNI; another Host than the SNI covers
// is misdirected.
func (h *host) emitSecure(rules []*rule) {
	routes := make([]*routev3.Route, 0, len(rules)+1)
	var clusters []string
	for _, u := range rules {
		routes = append(routes, u.route)
		clusters = u.appendClusters(clusters)
	}
	name := planeHTTPS + h.fqdn
	rc := routeConfiguration(name)
	if h.rules.onDemand() && !isWildcard(h.fqdn) {
		rc = scopedConfiguration(name)
		h.emitScope(name)
	}
	rc.VirtualHosts = []*routev3.VirtualHost{{Name: h.fqdn, Domains: []string{h.fqdn}, Routes: append(routes, notFound)}, misdirected}
	h.emitRoutes(rc, clusters)
}

func (h *host) emitRoutes(rc *routev3.RouteConfiguration, clusters []string) {
	h.r.Emit(index.Draft{Type: typeRoutes, Name: rc.Name, Body: marshal(rc), Refs: keys(typeCluster, clusters), Sources: h.sources})
}

// onPlain gives the routes for the plain listener, and the clusters they use.
func onPlain(rules []*rule) (routes []*routev3.Route, clusters []string) {
	routes = make([]*routev3.Route, 0, len(rules)+1)
	for _, u := range rules {
		routes = append(routes, u.onPlain())
		if !u.upgrade {
			clusters = u.appendClusters(clusters)
		}
	}
	return routes, clusters
}

// appendClusters keeps the list sorted, without duplicates.
func (u *rule) appendClusters(to []string) []string {
	for _, up := range u.upstream {
		name := up.name()
		if i, found := slices.BinarySearch(to, name); !found {
			to = slices.Insert(to, i, name)
		}
	}
	return to
}

// Parts that RouteConfigurations share.
var (
	scopeHeaders = []string{headerScope}
	fallbackOff  = map[string]*anypb.Any{filterFallback: packed(&routev3.FilterConfig{Disabled: true})}
	notFound     = &routev3.Route{Name: "not-found", Match: everything, Action: answer(404)}
	everything   = &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
	misdirected  = &routev3.VirtualHost{Name: "misdirected", Domains: []string{anyHost}, Routes: []*routev3.Route{
		{Name: "misdirected", Match: everything, Action: answer(421)},
	}}
	requestStart = []*corev3.HeaderValueOption{{
		Header:       &corev3.HeaderValue{Key: "x-request-start", Value: "t=%START_TIME(%s.%3f)%"},
		AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD,
	}}
)

func routeConfiguration(name string) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: name, RequestHeadersToAdd: requestStart, IgnorePortInHostMatching: true}
}

// scopedConfiguration is one that a scope leads to.
func scopedConfiguration(name string) *routev3.RouteConfiguration {
	rc := routeConfiguration(name)
	rc.RequestHeadersToRemove = scopeHeaders
	rc.TypedPerFilterConfig = fallbackOff
	return rc
}

// scope leads from a key to the RouteConfiguration of the same name.
func scope(name string) []byte {
	return marshal(&routev3.ScopedRouteConfiguration{
		Name: name, RouteConfigurationName: name,
		Key: &routev3.ScopedRouteConfiguration_Key{Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{{
			Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: name},
		}}},
	})
}
