package simulation

import (
	"strconv"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
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
