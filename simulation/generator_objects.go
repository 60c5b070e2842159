package simulation

import (
	"fmt"
	"slices"
	"strconv"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/holdfast-xds/holdfast/kinds"
)

func namespaceOf(service int) string {
	if service%4 == 3 {
		return ns2
	}
	return ns1
}

func serviceName(n int) string { return "s" + strconv.Itoa(n) }

// someService names a Service in the namespace; now and then one that may not be there.
func (g *generator) someService(r *random, ns string) string {
	for range 8 {
		if n := r.below(g.services); namespaceOf(n) == ns {
			return serviceName(n)
		}
	}
	return "absent"
}

func (g *generator) someRoute(r *random, ns, prefix string) contourv1.Route {
	services := []string{g.someService(r, ns)}
	if r.oneIn(4) {
		if other := g.someService(r, ns); other != services[0] {
			services = append(services, other)
		}
	}
	x := route(prefix, services...)
	if r.oneIn(6) {
		x.TimeoutPolicy = &contourv1.TimeoutPolicy{Response: strconv.Itoa(1+r.below(3)) + "s"}
	}
	if r.oneIn(8) {
		x.TimeoutPolicy = &contourv1.TimeoutPolicy{IdleConnection: strconv.Itoa(1+r.below(2)) + "s"} // another cluster
	}
	if !g.tidy && r.oneIn(12) {
		x.RequestHeadersPolicy = &contourv1.HeadersPolicy{Set: []contourv1.HeaderValue{{Name: "x-test", Value: rejectedHeader}}}
	}
	return x
}

func (g *generator) routes(r *random, ns string) []contourv1.Route {
	out := []contourv1.Route{g.someRoute(r, ns, "/")}
	for _, p := range paths[1:] {
		if r.oneIn(3) {
			out = append(out, g.someRoute(r, ns, p))
		}
	}
	return out
}

// root makes or changes a root HTTPProxy of a host; variant 1 competes with 0.
func (g *generator) root(r *random, host, variant int) {
	ns := ns1
	if variant == 1 && r.oneIn(2) {
		ns = ns2
	}
	secret := ""
	switch {
	case r.oneIn(3):
		secret = "t" + strconv.Itoa(r.below(secrets))
	case r.oneIn(4):
		secret = ns2 + "/t0"
	}
	p := newProxy(ns, fmt.Sprintf("p%d-%d", host, variant), g.hosts[host], secret)
	p.Spec.Routes = g.routes(r, ns)
	if r.oneIn(3) {
		p.Spec.Includes = []contourv1.Include{{
			Name: "c" + strconv.Itoa(r.below(children)), Namespace: ns1,
			Conditions: []contourv1.MatchCondition{{Prefix: pick(r, paths[1:])}},
		}}
	}
	if secret != "" && r.oneIn(3) {
		for i := range p.Spec.Routes {
			p.Spec.Routes[i].PermitInsecure = true
		}
	}
	g.put(kinds.HTTPProxy, p)
}

func (g *generator) child(r *random) {
	p := newProxy(ns1, "c"+strconv.Itoa(r.below(children)), "", "")
	p.Spec.Routes = []contourv1.Route{g.someRoute(r, ns1, "/")}
	if r.oneIn(3) {
		p.Spec.Routes = append(p.Spec.Routes, g.someRoute(r, ns1, pick(r, paths[1:])))
	}
	g.put(kinds.HTTPProxy, p)
}

// flip points a route of an existing HTTPProxy to another Service.
func (g *generator) flip(r *random) {
	all := g.api.list(kinds.HTTPProxy)
	if len(all) == 0 {
		return
	}
	p := typed[*contourv1.HTTPProxy](pick(r, all))
	if len(p.Spec.Routes) == 0 {
		return
	}
	x := &p.Spec.Routes[r.below(len(p.Spec.Routes))]
	x.Services = []contourv1.Service{{Name: g.someService(r, p.Namespace), Port: servicePort}}
	g.put(kinds.HTTPProxy, p)
}

func (g *generator) service(r *random, n int) {
	var notes map[string]string
	switch {
	case r.oneIn(5):
		notes = map[string]string{"projectcontour.io/max-connections": strconv.Itoa(100 + r.below(3))}
	case r.oneIn(8):
		notes = map[string]string{"projectcontour.io/upstream-protocol.h2c": "80"}
	case !g.tidy && r.oneIn(8):
		notes = map[string]string{"projectcontour.io/max-connections": strconv.Itoa(rejectedConnections)}
	}
	g.put(kinds.Service, newService(namespaceOf(n), serviceName(n), "http", notes))
}

// slice makes or changes one of a Service's slices.
func (g *generator) slice(r *random, service int) {
	var addresses []string
	for i := range pool {
		if r.oneIn(2) {
			addresses = append(addresses, address(service, i))
		}
	}
	g.put(kinds.EndpointSlice, newSlice(namespaceOf(service), serviceName(service), r.below(slicesOf), "http", addresses))
}

// moveAddress adds an address to another slice and takes it from the first one
// afterwards, as the slice controller does when it rebalances.
func (g *generator) moveAddress(r *random) {
	all := g.api.list(kinds.EndpointSlice)
	if len(all) == 0 {
		return
	}
	from := typed[*discoveryv1.EndpointSlice](pick(r, all))
	if len(from.Endpoints) == 0 {
		return
	}
	moved := from.Endpoints[0]
	service := from.Labels[discoveryv1.LabelServiceName]
	to := newSlice(from.Namespace, service, r.below(slicesOf), "http", nil)
	if to.Name == from.Name {
		return
	}
	if old := g.api.objects[keyOf(kinds.EndpointSlice, to)]; old != nil {
		to = typed[*discoveryv1.EndpointSlice](old)
	}
	to.Endpoints = append(to.Endpoints, moved)
	g.put(kinds.EndpointSlice, to)
	from.Endpoints = slices.Clone(from.Endpoints[1:])
	g.put(kinds.EndpointSlice, from)
}

func (g *generator) secret(r *random) {
	ns, name := ns1, "t"+strconv.Itoa(r.below(secrets))
	if r.oneIn(4) {
		ns, name = ns2, "t0"
	}
	g.put(kinds.Secret, newSecret(ns, name, r.below(certificateCount)))
}

func (g *generator) delegation(r *random) {
	name, target := "d"+strconv.Itoa(r.below(2)), pick(r, []string{ns1, "*"})
	g.put(kinds.TLSCertificateDelegation, newDelegation(ns2, name, []string{"t0"}, target))
}

func (g *generator) ingress(r *random) {
	secret := ""
	if r.oneIn(3) {
		secret = "t" + strconv.Itoa(r.below(secrets))
	}
	n := r.below(4)
	g.put(kinds.Ingress, newIngress(ns1, "i"+strconv.Itoa(n), pick(r, g.hosts), pick(r, paths), g.someService(r, ns1), secret))
}

func (g *generator) bystander(r *random) {
	if r.oneIn(2) {
		g.put(kinds.Namespace, newNamespace(pick(r, []string{ns1, ns2}), r.below(100)))
		return
	}
	g.put(kinds.IngressClass, newIngressClass("contour"))
}
