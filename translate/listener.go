package translate

import (
	"net/netip"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/holdfast-xds/holdfast/index"
)

// listenerParts are the parts of a listener that the options alone decide.
type listenerParts struct {
	// message is the serialized listener; the TLS one lacks the hosts' filter chains.
	message []byte
	// The HTTP filters of chains for exact and for wildcard names.
	filters, wildcardFilters []*hcmv3.HttpFilter
}

// The fields of Listener that are made for each host.
const (
	fieldFilterChains = 3
	fieldChainMatcher = 32 // which one is taken
)

func plainListener(address string) listenerParts {
	filters := []*hcmv3.HttpFilter{luaFilter(filterFallback, fallbackScript), router()}
	l := emptyListener(listenerHTTP, address)
	l.FilterChains = []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{connectionManager(byScope(scopeOfHost), listenerHTTP, filters)}}}
	return listenerParts{message: marshal(l)}
}

func secureListener(o *Options) listenerParts {
	l := emptyListener(listenerHTTPS, o.HTTPSAddress)
	l.ListenerFilters = []*listenerv3.ListenerFilter{{
		Name:       "envoy.filters.listener.tls_inspector",
		ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: packed(&inspectorv3.TlsInspector{})},
	}}
	if o.TLS == OnDemand {
		l.FilterChains = []*listenerv3.FilterChain{onDemandChain(o.anyVersions())}
	}
	filters := []*hcmv3.HttpFilter{router()}
	return listenerParts{
		message:         marshal(l),
		filters:         filters,
		wildcardFilters: append([]*hcmv3.HttpFilter{luaFilter(filterMisdirected, misdirectedScript)}, filters...),
	}
}

func emptyListener(name, address string) *listenerv3.Listener {
	where := netip.MustParseAddrPort(address)
	a := socketAddress(where)
	// "::" is meant for both families.
	a.GetSocketAddress().Ipv4Compat = where.Addr() == netip.IPv6Unspecified()
	return &listenerv3.Listener{Name: name, Address: a, SocketOptions: keepAlive}
}

// keepAlive finds dead clients: after 45 s of silence nine probes, 5 s apart.
// The numbers are those of Linux.
var keepAlive = []*corev3.SocketOption{
	socketOption(1, 9, 1),  // SOL_SOCKET SO_KEEPALIVE
	socketOption(6, 4, 45), // IPPROTO_TCP TCP_KEEPIDLE
	socketOption(6, 5, 5),  // IPPROTO_TCP TCP_KEEPINTVL
	socketOption(6, 6, 9),  // IPPROTO_TCP TCP_KEEPCNT
}

func socketOption(level, name, value int64) *corev3.SocketOption {
	return &corev3.SocketOption{
		Level: level, Name: name, State: corev3.SocketOption_STATE_LISTENING,
		Value: &corev3.SocketOption_IntValue{IntValue: value},
	}
}

// httpListener makes the plain listener. It never changes, but a fresh Envoy only
// gets it when everything is known that it will serve.
func (x *Rules) httpListener(r *index.Reader) {
	feed(r, allKinds)
	r.Emit(index.Draft{
		Type: typeListener, Name: listenerHTTP, Body: x.http.message, ClosedWorld: true,
		Refs: []index.ResourceKey{resourceKey(typeRoutes, nameFallback)},
	})
}

// feed says that a closed-world resource needs the kinds, without looking
// anything up.
func feed(r *index.Reader, list []index.Kind) {
	for _, k := range list {
		r.Range(k, "", index.NeedMonotone)
	}
}

// httpsListener puts the chains together, by name. Without any there is no
// listener, unless there is the on-demand chain.
func (x *Rules) httpsListener(r *index.Reader) {
	chains := r.Facts(factChain, index.NeedMonotone, allKinds...)
	if len(chains) == 0 && !x.onDemand() {
		return
	}
	size := len(x.https.message)
	for _, f := range chains {
		size += len(f.Value.(*chainFact).chain) + 8
	}
	body := append(make([]byte, 0, size), x.https.message...)
	var refs []index.ResourceKey
	var own []string
	seen := map[string]bool{}
	for _, f := range chains {
		c := f.Value.(*chainFact)
		body = appendField(body, fieldFilterChains, c.chain)
		refs = append(refs, resourceKey(typeRoutes, planeHTTPS+c.fqdn))
		own = append(own, c.fqdn)
		if !seen[c.secret] {
			seen[c.secret] = true
			refs = append(refs, resourceKey(typeSecret, c.secret))
		}
	}
	if x.onDemand() {
		body = appendField(body, fieldChainMatcher, marshal(chainMatcher(own, coveredHosts(r))))
	}
	r.Emit(index.Draft{Type: typeListener, Name: listenerHTTPS, Body: body, ClosedWorld: true, Refs: refs})
}

// coveredHosts gives those that the chain of a wildcard host must not be taken for.
func coveredHosts(r *index.Reader) []string {
	var out []string
	for _, f := range r.Facts(factCovered, index.NeedMonotone, allKinds...) {
		out = append(out, strings.TrimPrefix(f.Key, factCovered+"/"))
	}
	return out
}
