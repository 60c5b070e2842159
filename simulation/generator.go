package simulation

import (
	"fmt"
	"slices"
	"strconv"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// generator makes and changes the world's objects. Its choices depend on the
// random numbers that it is given and on the objects that are there.
type generator struct {
	api   *apiServer
	hosts []string
	// services are numbered; number n lives in namespaceOf(n).
	services int
	// tidy: nothing that an Envoy rejects is made.
	tidy bool
}

const (
	ns1, ns2 = "n1", "n2"
	children = 3
	secrets  = 3
	slicesOf = 3
	pool     = 5 // addresses of a Service
)

var paths = []string{"/", "/a", "/b"}

func newGenerator(api *apiServer, r *random) *generator {
	g := &generator{api: api, services: 3 + r.below(3), tidy: r.oneIn(2)}
	for i := range 2 + r.below(3) {
		g.hosts = append(g.hosts, "h"+strconv.Itoa(i)+".test")
	}
	if r.oneIn(2) {
		g.hosts = append(g.hosts, "*.w.test", "x.w.test")
	}
	return g
}

// put stores an object, if its kind is served.
func (g *generator) put(kind index.Kind, o body) {
	if g.api.health[kind] != unserved {
		g.api.put(kind, o)
	}
}

// populate makes the first objects.
func (g *generator) populate(r *random) {
	for _, n := range []string{ns1, ns2} {
		g.put(kinds.Namespace, newNamespace(n, 0))
	}
	for s := range g.services {
		g.service(r, s)
		g.slice(r, s)
		if r.oneIn(2) {
			g.slice(r, s)
		}
	}
	for range secrets {
		g.secret(r)
	}
	g.delegation(r)
	for range children {
		g.child(r)
	}
	for i := range g.hosts {
		if r.percent(80) {
			g.root(r, i, 0)
		}
	}
	for range 2 {
		g.ingress(r)
	}
	if r.oneIn(2) {
		g.put(kinds.IngressClass, newIngressClass("contour"))
	}
}

// mutate changes something.
func (g *generator) mutate(r *random) {
	changes := []struct {
		weight int
		do     func(*random)
	}{
		{10, func(r *random) { g.root(r, r.below(len(g.hosts)), r.below(2)) }},
		{10, g.flip},
		{5, g.child},
		{4, func(r *random) { g.service(r, r.below(g.services)) }},
		{16, func(r *random) { g.slice(r, r.below(g.services)) }},
		{4, g.secret},
		{2, g.delegation},
		{5, g.ingress},
		{1, g.bystander},
		{12, g.delete},
		{3, g.recreate},
		{3, g.moveAddress},
	}
	weights := make([]int, len(changes))
	for i, c := range changes {
		weights[i] = c.weight
	}
	changes[r.weighted(weights)].do(r)
}

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

// all gives every object, ordered by kind and key.
func (g *generator) all() []*index.Object {
	var out []*index.Object
	for _, k := range allKinds {
		out = append(out, g.api.list(k)...)
	}
	return out
}

func (g *generator) delete(r *random) {
	if all := g.all(); len(all) > 0 {
		g.api.remove(pick(r, all).ObjectKey)
	}
}

// recreate deletes an object and makes the same one again at once: another uid,
// another age.
func (g *generator) recreate(r *random) {
	all := g.all()
	if len(all) == 0 {
		return
	}
	o := pick(r, all)
	g.api.remove(o.ObjectKey)
	g.put(o.Kind, copyBody(o))
}

func copyBody(o *index.Object) body {
	return o.Body.(runtime.Object).DeepCopyObject().(body)
}

// repair takes away what Envoys reject.
func (g *generator) repair() {
	for _, o := range g.api.list(kinds.Service) {
		if s := typed[*corev1.Service](o); s.Annotations["projectcontour.io/max-connections"] == strconv.Itoa(rejectedConnections) {
			s.Annotations = nil
			g.put(kinds.Service, s)
		}
	}
	for _, o := range g.api.list(kinds.HTTPProxy) {
		p := typed[*contourv1.HTTPProxy](o)
		changed := false
		for i := range p.Spec.Routes {
			if p.Spec.Routes[i].RequestHeadersPolicy != nil {
				p.Spec.Routes[i].RequestHeadersPolicy, changed = nil, true
			}
		}
		if changed {
			g.put(kinds.HTTPProxy, p)
		}
	}
}
