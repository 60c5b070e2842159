package translate_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// fleet is n hosts, every third with TLS, every tenth with a child, on one
// Service each.
func fleet(t *testing.T, n int) []string {
	t.Helper()
	cert := tlsSecret(t, "ns", "cert", "*.example")
	out := []string{cert}
	for i := range n {
		a, host := fmt.Sprintf("a%d", i), fmt.Sprintf("h%d.example", i)
		out = append(out, strings.Split(service(a, "port: 80"), "\n---\n")...)
		virtualHost := "{fqdn: " + host + "}"
		if i%3 == 0 {
			virtualHost = "{fqdn: " + host + ", tls: {secretName: cert}}"
		}
		includes := ""
		if i%10 == 0 {
			includes = "\nincludes: [{name: child" + a + ", conditions: [{prefix: /c}]}]"
			out = append(out, proxy("child"+a, "routes: [{services: [{name: "+a+", port: 80}]}]"))
		}
		out = append(out, proxy("p"+a, "virtualhost: "+virtualHost+includes+"\nroutes: [{services: [{name: "+a+", port: 80}]}]"))
	}
	return out
}

// HF-13: the work for one edit does not depend on the number of hosts.
func TestDerivationsPerEdit(t *testing.T) {
	var counts [][]int
	for _, n := range []int{30, 300} {
		w := observed(t, translate.Options{})
		w.apply(strings.Join(fleet(t, n), "\n---\n"))
		edits := []struct {
			name   string
			commit func() index.Commit
		}{
			{"a plain host", func() index.Commit {
				return w.apply(proxy("pa1", "virtualhost: {fqdn: h1.example}\nroutes: [{conditions: [{prefix: /x}], services: [{name: a1, port: 80}]}]"))
			}},
			{"a TLS host", func() index.Commit {
				return w.apply(proxy("pa3", "virtualhost: {fqdn: h3.example, tls: {secretName: cert}}\nroutes: [{conditions: [{prefix: /x}], services: [{name: a3, port: 80}]}]"))
			}},
			{"a child", func() index.Commit {
				return w.apply(proxy("childa10", "routes: [{conditions: [{prefix: /x}], services: [{name: a10, port: 80}]}]"))
			}},
			{"endpoints", func() index.Commit { return w.apply(slice("a1", "8080", "10.0.0.7")) }},
			{"a Service", func() index.Commit {
				return w.apply("apiVersion: v1\nkind: Service\nmetadata: {name: a1}\nspec: {ports: [{port: 80, appProtocol: https}]}")
			}},
			{"a new plain host", func() index.Commit {
				return w.apply(proxy("new", "virtualhost: {fqdn: new.example}\nroutes: [{services: [{name: a1, port: 80}]}]"))
			}},
			{"a new TLS host", func() index.Commit { return w.apply(tlsRoot("newtls", "newtls.example", "cert")) }},
			{"an unrelated Secret", func() index.Commit { return w.apply(tlsSecret(t, "ns", "other", "x.example")) }},
			{"an unrelated Service", func() index.Commit {
				return w.apply("apiVersion: v1\nkind: Service\nmetadata: {name: other}\nspec: {ports: [{port: 80}]}")
			}},
		}
		var count []int
		for _, e := range edits {
			c := e.commit()
			count = append(count, len(c.Derivations))
			t.Logf("%d hosts, %s: %v, changed %v", n, e.name, c.Derivations, c.Changed)
		}
		counts = append(counts, count)
	}
	if !slices.Equal(counts[0], counts[1]) {
		t.Errorf("derivations per edit: %v with 30 hosts, %v with 300", counts[0], counts[1])
	}
	for i, most := range []int{1, 2, 2, 1, 4, 1, 6, 0, 0} {
		if counts[0][i] > most {
			t.Errorf("edit %d runs %d derivations, want at most %d", i, counts[0][i], most)
		}
	}
}

// Whatever the order in which objects come, the same bytes come out.
func TestOrderDoesNotMatter(t *testing.T) {
	objects := fleet(t, 12)
	objects = append(objects, root("clash", "h1.example"), ingress("i", "", oneRule("h1.example", "/i", "Prefix", "a2")),
		ingress("j", "", oneRule("*.example", "/", "Prefix", "a1")), ingress("k", "", "defaultBackend: {service: {name: a1, port: {number: 80}}}"))
	want := map[string][]byte{}
	seed := rand.Uint64()
	for round := range 6 {
		w := observed(t, translate.Options{})
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		r.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
		w.apply(strings.Join(objects, "\n---\n"))
		got := map[string][]byte{}
		for res := range w.resources() {
			got[shortKey(res)] = res.Body
		}
		if round == 0 {
			want = got
			continue
		}
		if len(got) != len(want) {
			t.Errorf("seed %d round %d: %d resources, want %d", seed, round, len(got), len(want))
		}
		for k, body := range got {
			if !bytes.Equal(body, want[k]) {
				t.Errorf("seed %d round %d: %s differs", seed, round, k)
			}
		}
	}
}

// A reference to an object of a kind that is not complete is unknown, not missing:
// the route stays, and the index holds the result back.
func TestUnknownIsNotMissing(t *testing.T) {
	w := newWorld(t, translate.Options{})
	w.see(root("p", "a.example") + proxy("q", "virtualhost: {fqdn: b.example}\nincludes: [{name: child, conditions: [{prefix: /x}]}]\nroutes: [{"+toA+"}]"))
	for _, c := range []struct {
		host   string
		routes string
		needs  []index.Kind
	}{
		{"http/a.example", "/ → ns/a/80", []index.Kind{kinds.Service}},
		{"http/b.example", "/ → ns/a/80", []index.Kind{kinds.HTTPProxy, kinds.Service}},
	} {
		check(t, c.host, w.routes(c.host), c.routes)
		if got := w.resource("RouteConfiguration", c.host).Needs(index.NeedMissing); !slices.Equal(got, c.needs) {
			t.Errorf("%s needs %v, want %v", c.host, got, c.needs)
		}
	}
	if p := w.ix.Snapshot().Problems(); p != nil {
		t.Errorf("said too early: %v", p)
	}
	w.observe(kinds.Service)
	check(t, "routes", w.routes("http/a.example"), "/ → 503")
	check(t, "problems", w.problems("p"), `error spec.routes[0].services[0] ServiceError/ServiceUnresolvedReference: Spec.Routes unresolved service reference: service "ns/a" not found`)
	w.observe(kinds.HTTPProxy)
	check(t, "routes", w.routes("http/b.example"), "/x → 502\n/ → 503")
}

// A Secret or delegation that is not known keeps the host, and makes no chain: one
// missing secret would hold back the whole listener.
func TestUnknownSecret(t *testing.T) {
	w := newWorld(t, translate.Options{})
	w.see(service("a", "port: 80") + "\n---\n" + tlsRoot("p", "a.example", "cert") + tlsRoot("q", "b.example", "admin/cert"))
	for _, host := range []string{"a.example", "b.example"} {
		check(t, host, w.routes("http/"+host), "/ → https")
		check(t, host, w.routes("https/"+host), "/ → ns/a/80")
	}
	if n := w.resource("RouteConfiguration", "https/a.example").Needs(index.NeedMissing); !slices.Equal(n, []index.Kind{kinds.Secret}) {
		t.Errorf("needs %v", n)
	}
	if w.chains() != nil {
		t.Errorf("chains %v", w.chains())
	}
	// What is seen goes out at once, before its list has ended.
	w.see(tlsSecret(t, "ns", "cert", "a.example") + tlsSecret(t, "admin", "cert", "b.example"))
	check(t, "chains", w.chains(), "a.example ns/cert TLSv1_2 TLSv1_3")
	w.see("apiVersion: projectcontour.io/v1\nkind: TLSCertificateDelegation\nmetadata: {namespace: admin, name: d}\nspec: {delegations: [{secretName: cert, targetNamespaces: [ns]}]}")
	check(t, "chains", w.chains(), "a.example ns/cert TLSv1_2 TLSv1_3\nb.example admin/cert TLSv1_2 TLSv1_3")
}

// An assignment without endpoints says that there are none.
func TestNoEndpoints(t *testing.T) {
	w := newWorld(t, translate.Options{})
	w.see("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80}]}\n---\n" + root("p", "a.example"))
	needs := func() []index.Kind { return w.resource("ClusterLoadAssignment", "ns/a/80").Needs(index.NeedMissing) }
	if got := needs(); !slices.Equal(got, []index.Kind{kinds.EndpointSlice}) {
		t.Errorf("empty: needs %v", got)
	}
	w.see(slice("a", "8080", "10.0.0.1"))
	if got := needs(); got != nil {
		t.Errorf("with one: needs %v", got)
	}
}

// The ways in which each resource relies on absence.
func TestNeeds(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + root("p", "a.example") + tlsSecret(t, "ns", "cert", "b.example") + tlsRoot("q", "b.example", "cert") +
		ingress("i", "", oneRule("c.example", "/", "Prefix", "a")))
	for _, c := range []struct {
		short, name string
		need        index.Need
		want        string
	}{
		{"RouteConfiguration", "http/a.example", index.NeedStrict, "HTTPProxy"},
		{"RouteConfiguration", "http/a.example", index.NeedMonotone, "HTTPProxy Ingress"},
		{"RouteConfiguration", "http/c.example", index.NeedStrict, ""},
		{"RouteConfiguration", "http/c.example", index.NeedMonotone, "HTTPProxy Ingress"},
		{"Listener", "ingress_http", index.NeedMonotone, "EndpointSlice HTTPProxy Ingress Secret Service TLSCertificateDelegation"},
		{"Listener", "ingress_http", index.NeedStrict | index.NeedMissing, ""},
		{"Listener", "ingress_https", index.NeedMonotone, "EndpointSlice HTTPProxy Ingress Secret Service TLSCertificateDelegation"},
		{"Listener", "ingress_https", index.NeedStrict | index.NeedMissing, "HTTPProxy"},
		{"RouteConfiguration", "http/*", index.NeedMonotone, "HTTPProxy Ingress"},
		{"ScopedRouteConfiguration", "http/*", index.NeedMonotone | index.NeedStrict | index.NeedMissing, ""},
		{"ClusterLoadAssignment", "ns/a/80", index.NeedMonotone, "EndpointSlice"},
		{"Cluster", "ns/a/80", index.NeedMonotone | index.NeedStrict | index.NeedMissing, ""},
		{"Cluster", "ns/a/80", index.NeedRemoval, "HTTPProxy Ingress Secret"},
		{"ClusterLoadAssignment", "ns/a/80", index.NeedRemoval, "HTTPProxy Ingress Secret Service"},
		{"Secret", "ns/cert", index.NeedRemoval, "HTTPProxy Secret"},
	} {
		r := w.resource(c.short, c.name)
		var got []string
		for _, k := range r.Needs(c.need) {
			got = append(got, string(k))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: need %d of %q, want %q", r.ResourceKey, c.need, g, c.want)
		}
	}
	for r := range w.resources() {
		closed := strings.Contains(r.Type, "Listener") || shortKey(r) == "RouteConfiguration http/*"
		if r.ClosedWorld != closed {
			t.Errorf("%s: closed world %v", r.ResourceKey, r.ClosedWorld)
		}
	}
	// The TLS listener's version must not rest on what its chains don't.
	for _, b := range w.resource("Listener", "ingress_https").Provenance {
		if b.Found && (b.Kind == kinds.Service || b.Kind == kinds.EndpointSlice) {
			t.Errorf("the listener rests on %s objects", b.Kind)
		}
	}
}

func BenchmarkHost(b *testing.B) {
	t := &testing.T{}
	ix, err := index.New(translate.New(translate.Options{}))
	if err != nil {
		b.Fatal(err)
	}
	w := &world{t: t, ix: ix, now: 1}
	for i := range kinds.All {
		w.observe(kinds.All[i].Kind)
	}
	w.apply(strings.Join(fleet(t, 300), "\n---\n"))
	edit := [2]*index.Object{}
	for i, path := range []string{"/x", "/z"} {
		edit[i] = parse(t, proxy("pa1", "virtualhost: {fqdn: h1.example}\nroutes: [{services: [{name: a1, port: 80}]}, {conditions: [{prefix: "+path+"}], services: [{name: a1, port: 80}]}, {conditions: [{prefix: /api}, {header: {name: x, present: true}}], services: [{name: a1, port: 80}], requestHeadersPolicy: {set: [{name: x, value: v}]}}]"))[0]
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		o := *edit[i%2]
		w.upsert(&o, true)
	}
}

// The cost of one more chain among many, with one certificate for all.
func BenchmarkNewTLSHost(b *testing.B) {
	t := &testing.T{}
	ix, err := index.New(translate.New(translate.Options{}))
	if err != nil {
		b.Fatal(err)
	}
	w := &world{t: t, ix: ix, now: 1}
	for i := range kinds.All {
		w.observe(kinds.All[i].Kind)
	}
	w.apply(tlsSecret(t, "ns", "cert", "*.example") + service("a", "port: 80"))
	for i := range 3407 {
		w.apply(tlsRoot(fmt.Sprintf("p%d", i), fmt.Sprintf("h%d.example", i), "cert"))
	}
	b.ReportMetric(float64(len(w.resource("Listener", "ingress_https").Body))/3407, "B/chain")
	one := parse(t, tlsRoot("one", "one.example", "cert"))[0]
	b.ReportAllocs()
	for b.Loop() {
		o := *one
		w.upsert(&o, true)
		w.remove(kinds.HTTPProxy, "ns", "one")
	}
}
