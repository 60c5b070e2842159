package translate_test

import (
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// aged writes a root of a certain age.
func aged(namespace, name, fqdn, created, service string) string {
	return "apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {namespace: " + namespace + ", name: " + name +
		", creationTimestamp: \"" + created + "\"}\nspec:\n  virtualhost: {fqdn: " + fqdn + "}\n  routes: [{services: [{name: " + service + ", port: 80}]}]\n---\n"
}

const (
	older   = "2024-01-01T00:00:00Z"
	younger = "2024-01-02T00:00:00Z"
)

// HP-03: the oldest keeps serving, the newcomer is told why it does not.
func TestTheOldestOwnsTheFQDN(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + service("b", "port: 80"))
	w.apply(aged("ns", "z-old", "a.example", older, "a"))
	w.apply(aged("ns", "a-new", "A.Example", younger, "b"))
	check(t, "routes", w.routes("http/a.example"), "/ → ns/a/80")
	check(t, "old", w.problems("z-old"), "")
	check(t, "new", w.problems("a-new"), `error spec.virtualhost.fqdn VirtualHostError/DuplicateVhost: fqdn "a.example" is used in multiple HTTPProxies: ns/a-new, ns/z-old; the oldest, ns/z-old, is served`)
	// HF-17: when the owner goes, the other takes over in one change.
	w.remove(kinds.HTTPProxy, "ns", "z-old")
	check(t, "routes", w.routes("http/a.example"), "/ → ns/b/80")
	check(t, "new", w.problems("a-new"), "")
}

// HP-03: of two of the same age the name decides.
func TestEqualAge(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + service("b", "port: 80"))
	w.apply(aged("ns", "z", "a.example", older, "b") + aged("ns", "x", "a.example", older, "a"))
	check(t, "routes", w.routes("http/a.example"), "/ → ns/a/80")
}

// --fqdn-conflict=reject-all: Contour's way.
func TestRejectAll(t *testing.T) {
	w := observed(t, translate.Options{FQDNConflict: translate.RejectAll})
	w.apply(service("a", "port: 80") + "\n---\n" + aged("ns", "x", "a.example", older, "a"))
	check(t, "routes", w.routes("http/a.example"), "/ → ns/a/80")
	w.apply(aged("ns", "w", "a.example", younger, "a"))
	const want = `error spec.virtualhost.fqdn VirtualHostError/DuplicateVhost: fqdn "a.example" is used in multiple HTTPProxies: ns/w, ns/x`
	check(t, "x", w.problems("x"), want)
	check(t, "w", w.problems("w"), want)
	if w.resource("ScopedRouteConfiguration", "http/a.example") != nil {
		t.Error("still served")
	}
}

// HP-08: a root elsewhere is invalid, and takes no host from others.
func TestRootNamespaces(t *testing.T) {
	w := observed(t, translate.Options{RootNamespaces: []string{"ns"}})
	w.apply(service("a", "port: 80") + "\n---\n" + aged("other", "x", "a.example", older, "a") + aged("ns", "y1", "a.example", younger, "a"))
	check(t, "x", w.problems("x"), "error metadata.namespace RootNamespaceError/RootProxyNotAllowedInNamespace: root HTTPProxy cannot be defined in this namespace")
	check(t, "y1", w.problems("y1"), "")
	check(t, "routes", w.routes("http/a.example"), "/ → ns/a/80")
}

// HP-01, IN-01: who is of a class that is served.
func TestIngressClass(t *testing.T) {
	for _, c := range []struct {
		name, annotations, field string
		classes                  []string
		served                   bool
	}{
		{name: "no class", served: true},
		{name: "contour", field: "contour", served: true},
		{name: "another", field: "nginx"},
		{name: "the annotation wins over the field", annotations: "projectcontour.io/ingress.class: contour", field: "nginx", served: true},
		{name: "the other annotation", annotations: "kubernetes.io/ingress.class: nginx"},
		{name: "Contour's annotation wins", annotations: "kubernetes.io/ingress.class: contour, projectcontour.io/ingress.class: nginx"},
		{name: "no class where classes are configured", classes: []string{"x"}},
		{name: "one of the classes", field: "x", classes: []string{"w", "x"}, served: true},
		{name: "contour where others are configured", field: "contour", classes: []string{"x"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := observed(t, translate.Options{IngressClassNames: c.classes})
			field := ""
			if c.field != "" {
				field = "ingressClassName: " + c.field + "\n"
			}
			w.apply(service("a", "port: 80"))
			w.apply(strings.Replace(proxy("p", field+"virtualhost: {fqdn: a.example}\nroutes: [{"+toA+"}]"), "{name: p}", "{name: p, annotations: {"+c.annotations+"}}", 1))
			w.apply(ingress("i", c.annotations, field+oneRule("b.example", "/", "Prefix", "a")))
			for _, host := range []string{"http/a.example", "http/b.example"} {
				if served := w.resource("ScopedRouteConfiguration", host) != nil; served != c.served {
					t.Errorf("%s served: %v", host, served)
				}
			}
		})
	}
}

// HP-01: an HTTPProxy of another class can't be included either.
func TestIncludeOfAnotherClass(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(proxy("root", "virtualhost: {fqdn: a.example}\nincludes: [{name: child, conditions: [{prefix: /x}]}]") +
		proxy("child", "ingressClassName: nginx\nroutes: [{"+toA+"}]"))
	check(t, "routes", w.routes("http/a.example"), "/x → 502")
	check(t, "child", w.problems("child"), "")
}

// A host that is no DNS name never reaches Envoy.
func TestInvalidHost(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + root("x", `"a b"`) + root("y1", `"*.*.example"`) + root("z", `""`))
	for name, want := range map[string]string{
		"x":  `error spec.virtualhost.fqdn VirtualHostError/FQDNNotValid: Spec.VirtualHost.Fqdn "a b" is not a DNS name`,
		"y1": `error spec.virtualhost.fqdn VirtualHostError/FQDNNotValid: Spec.VirtualHost.Fqdn "*.*.example" is not a DNS name`,
		"z":  `error spec.virtualhost.fqdn VirtualHostError/FQDNNotSpecified: Spec.VirtualHost.Fqdn must be specified`,
	} {
		check(t, name, w.problems(name), want)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    translate.Options
		want string
	}{
		{translate.Options{}, ""},
		{translate.Options{HTTPAddress: "localhost:80"}, `http address: "localhost:80" is not ip:port`},
		{translate.Options{HTTPSAddress: "0.0.0.0:0"}, `https address: "0.0.0.0:0" has no port`},
		{translate.Options{HTTPAddress: "[::]:80", HTTPSAddress: "[::]:80"}, "http and https address are both [::]:80"},
		{translate.Options{MinimumTLS: "1.1"}, `minimum tls version "1.1": want "1.2" or "1.3"`},
		{translate.Options{FQDNConflict: "newest"}, `fqdn conflict "newest": want "oldest" or "reject-all"`},
		{translate.Options{IngressClassNames: []string{"a", ""}}, `ingress class names: one of ["a" ""] is empty`},
		{translate.Options{RootNamespaces: []string{"A"}}, `root namespace "A": a lowercase RFC 1123 label`},
	} {
		err := c.o.Validate()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.o, err)
		case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
			t.Errorf("%+v: got %v, want %s", c.o, err, c.want)
		}
	}
}
