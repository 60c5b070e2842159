package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// held is a resource in one version, as somebody holds it.
type held struct {
	key    index.ResourceKey
	token  string
	digest index.Digest
	// view is the version of the API server's state from which the resource was
	// made: in all that it rests on, the maker saw the state as of then or later.
	view version
	// excused: it rests on the absence of objects of a kind that was not complete,
	// as only a client that held nothing may get it, after a wait.
	excused bool
	// partial: kinds of which it would use more were not complete.
	partial bool
	// newest is the newest version that the maker had seen of any kind. Beyond view
	// it was skewed: at no one version was the API server's state what it saw, its
	// watches of two kinds were apart.
	newest version
	parsed any // one of the types below
}

func (x *held) skewed() bool { return x.newest > x.view }

// What a resource says, as far as a model Envoy cares.
type (
	parsedCluster struct {
		eds         bool
		endpoints   string // name of the ClusterLoadAssignment
		timeout     time.Duration
		connections uint32
	}
	parsedEndpoints struct{ addresses []string }
	parsedListener  struct{ chains []parsedChain }
	parsedChain     struct {
		names   []string // SNI
		secrets []string
		routes  string // RouteConfiguration, or
		scope   string // what scope keys of its hosts begin with
		tls     bool
		tcp     []string
	}
	parsedScope  struct{ routes, key string }
	parsedRoutes struct {
		hosts    []parsedHost
		clusters []string // that any route uses, sorted
		rejected bool
	}
	parsedHost struct {
		domains []string
		routes  []parsedRoute
	}
	parsedRoute struct {
		name                   string
		prefix, path, segments string
		conditional            bool
		clusters               []string
		redirect               bool
		status                 uint32
	}
	parsedSecret struct{}
)

// parser reads bodies, each once.
type parser struct{ seen map[parserKey]any }

type parserKey struct {
	url    string
	digest index.Digest
}

func newParser() *parser { return &parser{seen: map[parserKey]any{}} }

const maxParsed = 1 << 16

func (p *parser) parse(r *index.Resource) any {
	k := parserKey{r.Type, r.Digest}
	if x, ok := p.seen[k]; ok {
		return x
	}
	if len(p.seen) > maxParsed {
		clear(p.seen)
	}
	x := parse(r)
	p.seen[k] = x
	return x
}

func parse(r *index.Resource) any {
	switch r.Type {
	case delta.Cluster:
		return parseCluster(decode(r, &clusterv3.Cluster{}))
	case delta.Endpoints:
		return parseEndpoints(decode(r, &endpointv3.ClusterLoadAssignment{}))
	case delta.Listener:
		return parseListener(decode(r, &listenerv3.Listener{}))
	case delta.ScopedRoutes:
		s := decode(r, &routev3.ScopedRouteConfiguration{})
		return &parsedScope{routes: s.GetRouteConfigurationName(), key: s.GetKey().GetFragments()[0].GetStringKey()}
	case delta.RouteConfiguration:
		return parseRoutes(decode(r, &routev3.RouteConfiguration{}))
	case delta.Secret:
		return &parsedSecret{}
	default:
		panic("simulation: resource of an unknown type " + r.Type)
	}
}

func decode[M proto.Message](r *index.Resource, m M) M {
	if err := proto.Unmarshal(r.Body, m); err != nil {
		panic(fmt.Sprintf("simulation: %s does not parse: %v", r.ResourceKey, err))
	}
	return m
}

const defaultFetchTimeout = 15 * time.Second

func parseCluster(c *clusterv3.Cluster) *parsedCluster {
	out := &parsedCluster{eds: c.GetType() == clusterv3.Cluster_EDS, endpoints: c.GetName(), timeout: defaultFetchTimeout}
	if e := c.GetEdsClusterConfig(); e != nil {
		if e.GetServiceName() != "" {
			out.endpoints = e.GetServiceName()
		}
		if t := e.GetEdsConfig().GetInitialFetchTimeout(); t != nil {
			out.timeout = t.AsDuration()
		}
	}
	for _, t := range c.GetCircuitBreakers().GetThresholds() {
		out.connections = max(out.connections, t.GetMaxConnections().GetValue())
	}
	return out
}

func parseEndpoints(c *endpointv3.ClusterLoadAssignment) *parsedEndpoints {
	out := &parsedEndpoints{}
	for _, l := range c.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			out.addresses = append(out.addresses, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	slices.Sort(out.addresses)
	return out
}

func parseListener(l *listenerv3.Listener) *parsedListener {
	out := &parsedListener{}
	for _, c := range l.GetFilterChains() {
		out.chains = append(out.chains, parseChain(c))
	}
	if c := l.GetDefaultFilterChain(); c != nil {
		out.chains = append(out.chains, parseChain(c))
	}
	return out
}

func parseChain(c *listenerv3.FilterChain) parsedChain {
	out := parsedChain{names: c.GetFilterChainMatch().GetServerNames()}
	if ts := c.GetTransportSocket().GetTypedConfig(); ts != nil {
		out.tls = true
		out.secrets = secretsOf(unpack(ts, &tlsv3.DownstreamTlsContext{}).GetCommonTlsContext())
	}
	for _, f := range c.GetFilters() {
		switch any := f.GetTypedConfig(); {
		case any.MessageIs(&hcmv3.HttpConnectionManager{}):
			m := unpack(any, &hcmv3.HttpConnectionManager{})
			out.routes = m.GetRds().GetRouteConfigName()
			out.scope = scopePrefix(m)
		case any.MessageIs(&tcpv3.TcpProxy{}):
			out.tcp = append(out.tcp, unpack(any, &tcpv3.TcpProxy{}).GetCluster())
		}
	}
	return out
}

func unpack[M proto.Message](a *anypb.Any, m M) M {
	if err := a.UnmarshalTo(m); err != nil {
		panic(err)
	}
	return m
}

func secretsOf(c *tlsv3.CommonTlsContext) []string {
	var out []string
	for _, s := range c.GetTlsCertificateSdsSecretConfigs() {
		out = append(out, s.GetName())
	}
	if s := c.GetValidationContextSdsSecretConfig(); s != nil {
		out = append(out, s.GetName())
	}
	if s := c.GetCombinedValidationContext().GetValidationContextSdsSecretConfig(); s != nil {
		out = append(out, s.GetName())
	}
	return out
}

// scopePrefix: scoped routes find a host's scope under "<plane>/<host>".
func scopePrefix(m *hcmv3.HttpConnectionManager) string {
	if m.GetScopedRoutes() == nil {
		return ""
	}
	return "http/"
}

func parseRoutes(rc *routev3.RouteConfiguration) *parsedRoutes {
	out := &parsedRoutes{}
	used := map[string]struct{}{}
	for _, v := range rc.GetVirtualHosts() {
		h := parsedHost{domains: v.GetDomains()}
		for _, r := range v.GetRoutes() {
			p := parseRoute(r)
			for _, c := range append(mirrors(r), p.clusters...) {
				used[c] = struct{}{}
			}
			out.rejected = out.rejected || adds(r.GetRequestHeadersToAdd(), rejectedHeader)
			h.routes = append(h.routes, p)
		}
		out.hosts = append(out.hosts, h)
	}
	out.clusters = sorted(used)
	return out
}

func adds(list []*corev3.HeaderValueOption, value string) bool {
	return slices.ContainsFunc(list, func(h *corev3.HeaderValueOption) bool { return h.GetHeader().GetValue() == value })
}

func mirrors(r *routev3.Route) []string {
	var out []string
	for _, m := range r.GetRoute().GetRequestMirrorPolicies() {
		out = append(out, m.GetCluster())
	}
	return out
}

func parseRoute(r *routev3.Route) parsedRoute {
	m := r.GetMatch()
	out := parsedRoute{
		name: r.GetName(), prefix: m.GetPrefix(), path: m.GetPath(), segments: m.GetPathSeparatedPrefix(),
		conditional: len(m.GetHeaders()) > 0 || len(m.GetQueryParameters()) > 0 || m.GetSafeRegex() != nil,
		redirect:    r.GetRedirect() != nil, status: r.GetDirectResponse().GetStatus(),
	}
	if a := r.GetRoute(); a != nil {
		if a.GetCluster() != "" {
			out.clusters = append(out.clusters, a.GetCluster())
		}
		for _, w := range a.GetWeightedClusters().GetClusters() {
			if w.GetWeight().GetValue() > 0 {
				out.clusters = append(out.clusters, w.GetName())
			}
		}
	}
	return out
}

// matches reports whether the route takes a request for the path.
func (r *parsedRoute) matches(path string) bool {
	switch {
	case r.conditional:
		return false
	case r.path != "":
		return r.path == path
	case r.segments != "":
		return path == r.segments || strings.HasPrefix(path, r.segments+"/")
	default:
		return strings.HasPrefix(path, r.prefix)
	}
}
