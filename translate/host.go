package translate

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/holdfast-xds/holdfast/index"
)

// host is the derivation of one fqdn's routes, those of its HTTPProxy and those
// of Ingresses.
type host struct {
	rules *Rules
	r     *index.Reader
	fqdn  string

	routes  []rule
	sources []index.ObjectKey
	secure  bool // has a RouteConfiguration for TLS

	// The metadata of the object that was translated last; its routes share it.
	described   index.ObjectKey
	description *corev3.Metadata
}

func (x *Rules) host(fqdn string, r *index.Reader) {
	h := &host{rules: x, r: r, fqdn: fqdn}
	root, served := h.owner()
	closed := served && len(unprotected(root.proxy)) > 0
	// Ingresses first: of two rules with the same match the later one stays.
	if !closed {
		h.addIngresses()
	}
	if served {
		h.addProxy(root, closed)
	}
	h.emit()
}

// owner settles whose the fqdn is, and tells the others. served is false when
// there is no HTTPProxy, or none that can be served.
func (h *host) owner() (root claim, served bool) {
	for _, v := range h.rules.judge(h.fqdn, claims(h.r, h.fqdn)) {
		if v.fault != nil {
			h.r.Problem(v.fault.on(v.object.ObjectKey, index.Error))
			continue
		}
		root, served = v.claim, true
	}
	return root, served && h.certified(root)
}

// certified: a root whose certificate can't be served is not served at all, on
// the plain listener neither.
func (h *host) certified(root claim) bool {
	t := root.proxy.Spec.VirtualHost.TLS
	if t == nil || t.Passthrough {
		return true
	}
	st, why := h.rules.certificate(h.r, h.fqdn, proxySecret(root.proxy))
	h.secure = st != unusable
	switch st {
	case unusable:
		h.problem(root.object.ObjectKey, index.Error, proxyTLSFault(root.proxy, why))
	case stale:
		h.problem(root.object.ObjectKey, index.Warning, staleFault(proxyTLSFault(root.proxy, why)))
	}
	return h.secure
}

// addProxy adds the rules of the root and of what it includes; closed: it asks
// for protection that is not implemented.
func (h *host) addProxy(root claim, closed bool) {
	k := root.object.ObjectKey
	h.addSource(k)
	for _, f := range unprotected(root.proxy) {
		h.problem(k, index.Error, f)
	}
	for _, f := range unadornedHost(root.proxy) {
		h.problem(k, index.Warning, f)
	}
	if closed {
		u := h.rule(k, "spec.virtualhost", newMatch(pathPrefix, "/", nil, nil), refuse())
		u.plain, u.secure = true, h.secure
		h.routes = []rule{u}
		return
	}
	t := tree{host: h, tls: root.proxy.Spec.VirtualHost.TLS != nil}
	h.routes = append(h.routes, t.proxy(node{object: root.object, proxy: root.proxy})...)
}

// rule begins a rule that a field of an object asks for.
func (h *host) rule(k index.ObjectKey, field string, m match, route *routev3.Route) rule {
	if strings.HasPrefix(h.fqdn, "*.") {
		m = newMatch(m.kind, m.path, append(m.headers, oneLabel(h.fqdn)), m.queries)
	}
	if h.description == nil || h.described != k {
		h.described, h.description = k, metadata(k)
	}
	route.Metadata = h.description
	return rule{name: routeName(k, field), match: m, route: route}
}

// refuse is the route in the place of what must not be served.
func refuse() *routev3.Route { return &routev3.Route{Action: answer(503)} }

func (h *host) problem(k index.ObjectKey, s index.Severity, f *fault) { h.r.Problem(f.on(k, s)) }

func (h *host) addSource(k index.ObjectKey) {
	for _, s := range h.sources {
		if s == k {
			return
		}
	}
	h.sources = append(h.sources, k)
}
