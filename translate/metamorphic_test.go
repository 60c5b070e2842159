package translate_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/translate"
)

// What edits one by one lead to is what a fresh index makes of the objects that
// are left: every derivation has read all that it rests on.
func TestIncrementalEqualsFromScratch(t *testing.T) {
	for _, mode := range []translate.TLSMode{translate.Chains, translate.OnDemand} {
		t.Run(string(mode), func(t *testing.T) {
			incrementalEqualsFromScratch(t, translate.Options{RootNamespaces: []string{"n1", "n2"}, TLS: mode})
		})
	}
}

func incrementalEqualsFromScratch(t *testing.T, o translate.Options) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0)), t: t}
	for i := range g.certificates {
		g.certificates[i] = tlsSecret(t, "@NS@", "@NAME@", fmt.Sprintf("%d.example", i))
	}
	w := observed(t, o)
	live := map[index.ObjectKey]*index.Object{}
	for step := range 1200 {
		g.edit(w, live)
		if step%40 == 39 {
			fresh := observed(t, o)
			for _, o := range sorted(live) {
				again := *o
				fresh.upsert(&again, true)
			}
			if !same(t, w, fresh) {
				t.Fatalf("seed %d, step %d: the index differs from one made from scratch", seed, step)
			}
		}
	}
}

func sorted(live map[index.ObjectKey]*index.Object) []*index.Object {
	return slices.SortedFunc(maps.Values(live), func(a, b *index.Object) int { return strings.Compare(a.String(), b.String()) })
}

func same(t *testing.T, a, b *world) bool {
	t.Helper()
	x, y := contents(a), contents(b)
	equal := true
	for k := range x {
		if !bytes.Equal(x[k].body, y[k].body) || !slices.Equal(x[k].refs, y[k].refs) {
			t.Errorf("%s differs: %v and %v", k, x[k].refs, y[k].refs)
			equal = false
		}
	}
	for k := range y {
		if _, ok := x[k]; !ok {
			t.Errorf("%s is not there", k)
			equal = false
		}
	}
	if p, q := said(a), said(b); !slices.Equal(p, q) {
		t.Errorf("problems:\n%s\nand from scratch:\n%s", strings.Join(p, "\n"), strings.Join(q, "\n"))
		equal = false
	}
	return equal
}

type content struct {
	body []byte
	refs []index.ResourceKey
}

func contents(w *world) map[string]content {
	out := map[string]content{}
	for r := range w.resources() {
		out[shortKey(r)] = content{r.Body, r.Refs}
	}
	return out
}

func said(w *world) []string {
	var out []string
	for _, p := range w.ix.Snapshot().Problems() {
		out = append(out, fmt.Sprintf("%s %s %s %s", p.Object, p.Field, p.Reason, p.Message))
	}
	slices.Sort(out)
	return out
}

// generator makes objects over few names, so that they meet.
type generator struct {
	*rand.Rand
	t            *testing.T
	certificates [3]string
}

func (g *generator) pick(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) edit(w *world, live map[index.ObjectKey]*index.Object) {
	if g.IntN(4) == 0 && len(live) > 0 {
		o := sorted(live)[g.IntN(len(live))]
		delete(live, o.ObjectKey)
		w.remove(o.Kind, o.Namespace, o.Name)
		return
	}
	o := parse(g.t, g.object())[0]
	w.upsert(o, true)
	live[o.ObjectKey] = o
}

func (g *generator) object() string {
	ns := g.pick("n1", "n2", "n3")
	switch g.IntN(8) {
	case 0, 1:
		return inNamespace(ns, g.proxy())
	case 2:
		return inNamespace(ns, proxy(g.pick("c0", "c1"), "includes: [{name: "+g.pick("c0", "c1", "c2")+", conditions: [{prefix: /"+g.pick("x", "w")+"}]}]\nroutes: ["+g.route()+"]"))
	case 3:
		return inNamespace(ns, ingress(g.pick("i0", "i1"), g.pick("", "projectcontour.io/tls-cert-namespace: n1"), oneRule(g.host(), g.pick("/", "/x"), "Prefix", g.service())+g.pick("", "tls: [{hosts: [\""+g.host()+"\"], secretName: "+g.secret()+"}]")))
	case 4:
		return inNamespace(ns, "apiVersion: v1\nkind: Service\nmetadata: {name: "+g.service()+"}\nspec: {ports: [{port: "+g.pick("80", "81")+g.pick("", ", name: web", ", appProtocol: https")+"}]}")
	case 5:
		return inNamespace(ns, strings.Replace(slice(g.service(), g.pick("8080", "9090"), g.pick("10.0.0.1", "10.0.0.2")), "-1,", g.pick("-1,", "-2,"), 1))
	case 6:
		return strings.NewReplacer("@NS@", ns, "@NAME@", g.secret()).Replace(g.certificates[g.IntN(len(g.certificates))])
	default:
		return inNamespace(ns, "apiVersion: projectcontour.io/v1\nkind: TLSCertificateDelegation\nmetadata: {name: d}\nspec: {delegations: [{secretName: "+g.secret()+", targetNamespaces: [\""+g.pick("*", "n1", "n2")+"\"]}]}")
	}
}

func (g *generator) proxy() string {
	tls := g.pick("", "", ", tls: {secretName: "+g.pick("", "n1/")+g.secret()+g.pick("", ", minimumProtocolVersion: '1.3'")+"}")
	include := g.pick("", "includes: [{name: "+g.pick("c0", "c1")+g.pick("", ", namespace: n1")+", conditions: [{prefix: /"+g.pick("x", "w")+"}]}]\n")
	text := proxy(g.pick("p0", "p1", "c1"), "virtualhost: {fqdn: \""+g.host()+"\""+tls+"}\n"+include+"routes: ["+g.route()+"]")
	return strings.Replace(text, "metadata: {", "metadata: {creationTimestamp: \""+g.pick(older, younger)+"\", ", 1)
}

func (g *generator) route() string {
	return "{conditions: [{prefix: /" + g.pick("", "x", "x/") + "}], services: [{name: " + g.service() + ", port: " + g.pick("80", "81") + "}]" +
		g.pick("", ", permitInsecure: true", ", pathRewritePolicy: {replacePrefix: [{replacement: /r}]}") + "}"
}

func (g *generator) host() string    { return g.pick("a.example", "b.example", "*.example", "A.example") }
func (g *generator) service() string { return g.pick("s0", "s1") }
func (g *generator) secret() string  { return g.pick("t0", "t1") }

func inNamespace(ns, text string) string {
	return strings.Replace(text, "metadata: {", "metadata: {namespace: "+ns+", ", 1)
}
