package translate_test

import (
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// IN-04: the ways to match a path.
func TestIngressPaths(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + service("b", "port: 80"))
	w.apply(ingress("i", "", `
rules:
- host: A.example
  http:
    paths:
    - {path: /, pathType: Prefix, backend: {service: {name: a, port: {number: 80}}}}
    - {path: /foo/, pathType: Prefix, backend: {service: {name: b, port: {number: 80}}}}
    - {path: /foo, pathType: Exact, backend: {service: {name: a, port: {number: 80}}}}
    - {path: "/re[0-9]+", pathType: ImplementationSpecific, backend: {service: {name: a, port: {number: 80}}}}
    - {path: "/bad[", pathType: ImplementationSpecific, backend: {service: {name: a, port: {number: 80}}}}
    - {path: /plain, backend: {service: {name: a, port: {number: 80}}}}
    - {path: /gone, pathType: Prefix, backend: {service: {name: none, port: {number: 80}}}}
    - {path: /r, pathType: Prefix, backend: {resource: {kind: X, name: z}}}
- host: empty.example`))
	check(t, "routes", w.routes("http/a.example"), `
=/foo → ns/a/80
~^/re[0-9]+ → ns/a/80
/plain → ns/a/80
/foo| → ns/b/80
/ → ns/a/80`)
	check(t, "problems", w.problems("i"), `
error spec.rules[0].http.paths[4].path /PathNotValid: path "/bad[": error parsing regexp: missing closing ]: `+"`[`"+`
error spec.rules[0].http.paths[6].backend /ServiceUnresolvedReference: service "ns/none" not found
error spec.rules[0].http.paths[7].backend /ServiceUnresolvedReference: backend does not refer to a Service; resource backends are not supported`)
	if w.resource("RouteConfiguration", "http/empty.example") != nil {
		t.Error("a rule without paths is served")
	}
}

// IN-05: a port by its name.
func TestIngressPortName(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80, name: web") + "\n---\n" + ingress("i", "", `
rules:
- host: a.example
  http:
    paths:
    - {path: /, pathType: Prefix, backend: {service: {name: a, port: {name: web}}}}
    - {path: /x, pathType: Prefix, backend: {service: {name: a, port: {name: none}}}}`))
	check(t, "routes", w.routes("http/a.example"), "/ → ns/a/80")
	check(t, "problems", w.problems("i"), `error spec.rules[0].http.paths[1].backend /ServiceUnresolvedReference: port "none" on service "ns/a" not matched`)
}

// IN-07: HTTPProxy overrides Ingress for the same path, and they add up else.
func TestProxyOverridesIngress(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + service("b", "port: 80"))
	w.apply(ingress("i", "", oneRule("a.example", "/", "Prefix", "b")+`
- host: a.example
  http:
    paths:
    - {path: /x, pathType: Prefix, backend: {service: {name: b, port: {number: 80}}}}
    - {path: /i, pathType: Prefix, backend: {service: {name: b, port: {number: 80}}}}`))
	check(t, "routes", w.routes("http/a.example"), "/x| → ns/b/80\n/i| → ns/b/80\n/ → ns/b/80")
	w.apply(proxy("p", "virtualhost: {fqdn: a.example}\nroutes:\n- {"+toA+"}\n- {conditions: [{prefix: /x}], "+toA+"}"))
	check(t, "routes", w.routes("http/a.example"), "/x → ns/a/80\n/i| → ns/b/80\n/ → ns/a/80")
	w.remove(kinds.HTTPProxy, "ns", "p")
	check(t, "routes", w.routes("http/a.example"), "/x| → ns/b/80\n/i| → ns/b/80\n/ → ns/b/80")
}

// Of two Ingresses with the same path the older one is served.
func TestOldestIngress(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + service("b", "port: 80"))
	w.apply(strings.Replace(ingress("i", "", oneRule("a.example", "/", "Prefix", "b")), "{name: i", "{name: i, creationTimestamp: \""+younger+"\"", 1))
	w.apply(strings.Replace(ingress("j", "", oneRule("a.example", "/", "Prefix", "a")), "{name: j", "{name: j, creationTimestamp: \""+older+"\"", 1))
	check(t, "routes", w.routes("http/a.example"), "/ → ns/a/80")
}

// IN-06: TLS of an Ingress; the plain route needs no certificate.
func TestIngressTLS(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + ingress("i", "", oneRule("a.example", "/", "Prefix", "a")+"tls: [{hosts: [a.example], secretName: cert}]"))
	check(t, "http", w.routes("http/a.example"), "/ → ns/a/80")
	check(t, "problems", w.problems("i"), `error spec.tls[0].secretName TLSError/SecretNotValid: Secret "ns/cert" is invalid: Secret not found`)
	if w.chains() != nil {
		t.Error("a chain without a certificate")
	}
	w.apply(tlsSecret(t, "ns", "cert", "a.example"))
	check(t, "chains", w.chains(), "a.example ns/cert TLSv1_2 TLSv1_3")
	check(t, "https", w.routes("https/a.example"), "/ → ns/a/80")
	check(t, "problems", w.problems("i"), "")
}

// IN-06: an HTTPProxy's certificate wins; a host may have TLS by an Ingress alone.
func TestIngressTLSBesideProxy(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "one", "a.example") + tlsSecret(t, "ns", "two", "a.example"))
	w.apply(ingress("i", "", oneRule("a.example", "/i", "Prefix", "a")+"tls: [{hosts: [a.example], secretName: one}]"))
	w.apply(root("p", "a.example"))
	check(t, "chains", w.chains(), "a.example ns/one TLSv1_2 TLSv1_3")
	check(t, "https", w.routes("https/a.example"), "/i| → ns/a/80")
	w.apply(tlsRoot("p", "a.example", "two"))
	check(t, "chains", w.chains(), "a.example ns/two TLSv1_2 TLSv1_3")
	check(t, "http", w.routes("http/a.example"), "/i| → ns/a/80\n/ → https")
	check(t, "https", w.routes("https/a.example"), "/i| → ns/a/80\n/ → ns/a/80")
}

func TestIngressAnnotations(t *testing.T) {
	for _, c := range []struct{ name, annotations, http, https, chain, problems string }{
		{"none", "", "/ → ns/a/80", "/ → ns/a/80", "a.example ns/cert TLSv1_2 TLSv1_3", ""},
		{"force-ssl-redirect", `ingress.kubernetes.io/force-ssl-redirect: "true"`, "/ → https", "/ → ns/a/80", "a.example ns/cert TLSv1_2 TLSv1_3", ""},
		{"allow-http", `kubernetes.io/ingress.allow-http: "false"`, "", "/ → ns/a/80", "a.example ns/cert TLSv1_2 TLSv1_3", ""},
		{"minimum version", `projectcontour.io/tls-minimum-protocol-version: "1.3"`, "/ → ns/a/80", "/ → ns/a/80", "a.example ns/cert TLSv1_3 TLSv1_3", ""},
		{"maximum version", `projectcontour.io/tls-maximum-protocol-version: "1.2"`, "/ → ns/a/80", "/ → ns/a/80", "a.example ns/cert TLSv1_2 TLSv1_2", ""},
		{
			"bad timeout", `projectcontour.io/response-timeout: soon`, "/ → ns/a/80", "/ → ns/a/80", "a.example ns/cert TLSv1_2 TLSv1_3",
			`warning metadata.annotations[projectcontour.io/response-timeout] /AnnotationNotValid: annotation projectcontour.io/response-timeout: unable to parse timeout string "soon": time: invalid duration "soon"`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := observed(t, translate.Options{})
			w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "a.example"))
			w.apply(ingress("i", c.annotations, oneRule("a.example", "/", "Prefix", "a")+"tls: [{hosts: [a.example], secretName: cert}]"))
			check(t, "http", w.routes("http/a.example"), c.http)
			check(t, "https", w.routes("https/a.example"), c.https)
			check(t, "chains", w.chains(), c.chain)
			check(t, "problems", w.problems("i"), c.problems)
		})
	}
}

// tls-cert-namespace: a certificate of another namespace, if it is delegated.
func TestIngressDelegation(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "admin", "cert", "a.example"))
	w.apply(ingress("i", "projectcontour.io/tls-cert-namespace: admin", oneRule("a.example", "/", "Prefix", "a")+"tls: [{hosts: [a.example], secretName: cert}]"))
	check(t, "problems", w.problems("i"), `error spec.tls[0].secretName TLSError/DelegationNotPermitted: Secret "admin/cert" certificate delegation not permitted`)
	w.apply("apiVersion: projectcontour.io/v1\nkind: TLSCertificateDelegation\nmetadata: {namespace: admin, name: d}\nspec: {delegations: [{secretName: cert, targetNamespaces: [ns]}]}")
	check(t, "chains", w.chains(), "a.example admin/cert TLSv1_2 TLSv1_3")
}

// IN-02, IN-03: the default backend, and a rule without a host.
func TestDefaultHost(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + service("b", "port: 80"))
	w.apply(ingress("i", "", "defaultBackend: {service: {name: a, port: {number: 80}}}\n"+oneRule("", "/b", "Prefix", "b")))
	check(t, "fallback", w.routes("http/*"), "/b| → ns/b/80\n/ → ns/a/80")
	w.remove(kinds.Ingress, "ns", "i")
	r := w.resource("RouteConfiguration", "http/*")
	if r == nil || len(r.Refs) != 0 {
		t.Errorf("the fallback is %v", r)
	}
}
