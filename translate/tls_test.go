package translate_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// chains gives the names of the TLS listener's filter chains, with their
// certificate and versions.
func (w *world) chains() []string {
	w.t.Helper()
	r := w.resource("Listener", "ingress_https")
	if r == nil {
		return nil
	}
	m, err := translate.Decode(r)
	if err != nil {
		w.t.Fatal(err)
	}
	show(w.t, r) // validates
	var out []string
	for _, c := range m.(*listenerv3.Listener).FilterChains {
		d := &tlsv3.DownstreamTlsContext{}
		if err := c.TransportSocket.GetTypedConfig().UnmarshalTo(d); err != nil {
			w.t.Fatal(err)
		}
		p := d.CommonTlsContext.TlsParams
		out = append(out, strings.Join([]string{
			strings.Join(c.FilterChainMatch.ServerNames, ","), d.CommonTlsContext.TlsCertificateSdsSecretConfigs[0].Name,
			p.TlsMinimumProtocolVersion.String(), p.TlsMaximumProtocolVersion.String(),
		}, " "))
	}
	return out
}

// HP-20, HP-29: the plain listener redirects, the other serves.
func TestTLSHost(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "a.example"))
	w.apply(proxy("p", `
virtualhost: {fqdn: a.example, tls: {secretName: cert}}
routes:
- {`+toA+`}
- {conditions: [{prefix: /open}], permitInsecure: true, `+toA+`}
- {conditions: [{prefix: /moved}], requestRedirectPolicy: {path: /}}`))
	check(t, "http", w.routes("http/a.example"), "/moved → https\n/open → ns/a/80\n/ → https")
	check(t, "https", w.routes("https/a.example"), "/moved → redirect\n/open → ns/a/80\n/ → ns/a/80")
	check(t, "chains", w.chains(), "a.example ns/cert TLSv1_2 TLSv1_3")
	l := w.resource("Listener", "ingress_https")
	if !slices.Contains(l.Refs, w.resource("Secret", "ns/cert").ResourceKey) || !slices.Contains(l.Refs, w.resource("RouteConfiguration", "https/a.example").ResourceKey) {
		t.Errorf("the listener refers to %v", l.Refs)
	}
	// HP-46: only the open route uses the cluster there.
	if refs := w.resource("RouteConfiguration", "http/a.example").Refs; len(refs) != 1 {
		t.Errorf("http/a.example refers to %v", refs)
	}
	// HP-29: another Host is misdirected.
	m, err := translate.Decode(w.resource("RouteConfiguration", "https/a.example"))
	if err != nil {
		t.Fatal(err)
	}
	v := m.(*routev3.RouteConfiguration).VirtualHosts
	if len(v) != 2 || v[1].Domains[0] != "*" || v[1].Routes[0].GetDirectResponse().GetStatus() != 421 {
		t.Errorf("virtual hosts %v", v)
	}
	w.remove(kinds.HTTPProxy, "ns", "p")
	for _, short := range []string{"Listener ingress_https", "Secret ns/cert", "RouteConfiguration https/a.example"} {
		kind, name, _ := strings.Cut(short, " ")
		if w.resource(kind, name) != nil {
			t.Errorf("%s is left", short)
		}
	}
}

// HP-21
func TestTLSVersions(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "a.example"))
	for _, c := range []struct{ tls, chains, problems string }{
		{`minimumProtocolVersion: "1.3"`, "a.example ns/cert TLSv1_3 TLSv1_3", ""},
		{`maximumProtocolVersion: "1.2"`, "a.example ns/cert TLSv1_2 TLSv1_2", ""},
		{
			`minimumProtocolVersion: "1.3", maximumProtocolVersion: "1.2"`, "",
			"error spec.virtualhost.tls TLSError/TLSConfigNotValid: Spec.Virtualhost.TLS the minimum protocol version is greater than the maximum protocol version",
		},
	} {
		w.apply(proxy("p", "virtualhost: {fqdn: a.example, tls: {secretName: cert, "+c.tls+"}}\nroutes: [{"+toA+"}]"))
		check(t, "chains", w.chains(), c.chains)
		check(t, "problems", w.problems("p"), c.problems)
	}
}

// HP-21: no host has less than what is set for all.
func TestMinimumTLSVersion(t *testing.T) {
	w := observed(t, translate.Options{MinimumTLS: "1.3"})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "a.example"))
	const tooLow = "warning spec.virtualhost.tls.maximumProtocolVersion TLSError/TLSVersionTooLow: the maximum protocol version is lower than the lowest for all hosts, TLS 1.3, which is used"
	for _, c := range []struct{ tls, problems string }{
		{"", ""},
		{`, minimumProtocolVersion: "1.2"`, ""},
		{`, maximumProtocolVersion: "1.3"`, ""},
		{`, maximumProtocolVersion: "1.2"`, tooLow},
	} {
		w.apply(proxy("p", "virtualhost: {fqdn: a.example, tls: {secretName: cert"+c.tls+"}}\nroutes: [{"+toA+"}]"))
		check(t, "chains"+c.tls, w.chains(), "a.example ns/cert TLSv1_3 TLSv1_3")
		check(t, "problems"+c.tls, w.problems("p"), c.problems)
	}
}

// A host without its certificate is not served at all, and heals.
func TestMissingSecret(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsRoot("p", "a.example", "cert"))
	const missing = `error spec.virtualhost.tls.secretName TLSError/SecretNotValid: Spec.VirtualHost.TLS Secret "cert" is invalid: Secret not found`
	check(t, "problems", w.problems("p"), missing)
	if w.resource("ScopedRouteConfiguration", "http/a.example") != nil || w.chains() != nil {
		t.Error("served without a certificate")
	}
	w.apply(tlsSecret(t, "ns", "cert", "a.example"))
	check(t, "problems", w.problems("p"), "")
	check(t, "chains", w.chains(), "a.example ns/cert TLSv1_2 TLSv1_3")
	w.remove(kinds.Secret, "ns", "cert")
	check(t, "problems", w.problems("p"), missing)
	if w.chains() != nil {
		t.Error("still served")
	}
}

// HF-07: a broken Secret keeps the last good certificate in service.
func TestBrokenSecret(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsRoot("p", "a.example", "cert") + tlsSecret(t, "ns", "cert", "a.example"))
	before := w.resource("Secret", "ns/cert").Body
	w.apply(broken(t, "ns", "cert"))
	if r := w.resource("Secret", "ns/cert"); r == nil || !bytes.Equal(r.Body, before) {
		t.Fatal("the last good certificate is gone")
	}
	check(t, "chains", w.chains(), "a.example ns/cert TLSv1_2 TLSv1_3")
	check(t, "routes", w.routes("https/a.example"), "/ → ns/a/80")
	const kept = "invalid TLS private key: failed to parse PEM block; the last good certificate stays in service"
	check(t, "secret", w.problems("cert"), "warning data /SecretNotValid: "+kept)
	check(t, "proxy", w.problems("p"), `warning spec.virtualhost.tls.secretName TLSError/SecretNotValid: Spec.VirtualHost.TLS Secret "cert" is invalid: `+kept)
	w.apply(tlsSecret(t, "ns", "cert", "a.example"))
	if bytes.Equal(w.resource("Secret", "ns/cert").Body, before) {
		t.Error("the new certificate is not in service")
	}
	check(t, "proxy", w.problems("p"), "")
}

// HF-07: after a restart the broken Secret is all that there is, but an Envoy
// that comes back with an older version keeps its host.
func TestBrokenSecretAfterRestart(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsRoot("p", "a.example", "cert") + broken(t, "ns", "cert"))
	if w.chains() != nil {
		t.Fatal("a chain without a certificate")
	}
	var k index.ResourceKey
	for _, ts := range translate.New(translate.Options{}).Types() {
		if strings.HasSuffix(ts.URL, ".Secret") {
			k = index.ResourceKey{Type: ts.URL, Name: "ns/cert"}
		}
	}
	w.ix.Apply(index.Cause{}, index.Witness{Resource: k})
	check(t, "chains", w.chains(), "a.example ns/cert TLSv1_2 TLSv1_3")
	check(t, "routes", w.routes("https/a.example"), "/ → ns/a/80")
	if w.resource("Secret", "ns/cert") != nil {
		t.Error("made a certificate out of a broken Secret")
	}
	check(t, "secret", w.problems("cert"), "warning data /SecretNotValid: invalid TLS private key: failed to parse PEM block; the last good certificate stays in service")
}

// TD-01: another namespace's Secret needs a delegation.
func TestDelegation(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsRoot("p", "a.example", "admin/cert") + tlsSecret(t, "admin", "cert", "a.example"))
	const refused = `error spec.virtualhost.tls.secretName TLSError/DelegationNotPermitted: Spec.VirtualHost.TLS Secret "admin/cert" certificate delegation not permitted`
	check(t, "problems", w.problems("p"), refused)
	if w.resource("Secret", "admin/cert") != nil {
		t.Error("a Secret that is not delegated was made")
	}
	delegation := func(secret, to string) string {
		return "apiVersion: projectcontour.io/v1\nkind: TLSCertificateDelegation\nmetadata: {namespace: admin, name: d}\nspec: {delegations: [{secretName: " + secret + ", targetNamespaces: [" + to + "]}]}"
	}
	for _, c := range []struct {
		secret, to string
		permitted  bool
	}{{"cert", "ns", true}, {"cert", `"*"`, true}, {"cert", "x, ns", true}, {"cert", `x, "*"`, false}, {"other", "ns", false}} {
		w.apply(delegation(c.secret, c.to))
		if permitted := w.chains() != nil; permitted != c.permitted {
			t.Errorf("%s to [%s]: permitted %v", c.secret, c.to, permitted)
		}
	}
	w.apply(delegation("cert", "ns"))
	w.remove(kinds.TLSCertificateDelegation, "admin", "d")
	check(t, "problems", w.problems("p"), refused)
}

// What Envoy would reject is found here.
func TestCertificates(t *testing.T) {
	cert, key := certificateFor(t, "a.example")
	other, otherKey := certificateFor(t, "b.example")
	small, smallKey := rsaCertificateFor(t, "a.example", 1024)
	large, largeKey := rsaCertificateFor(t, "a.example", 2048)
	for _, c := range []struct {
		name      string
		cert, key []byte
		want      string
	}{
		{"ECDSA", cert, key, ""},
		{"RSA", large, largeKey, ""},
		{"a chain, with text around it", slices.Concat([]byte("# leaf\n"), cert, []byte("# issuer\n"), other), key, ""},
		{"keys that don't match", cert, otherKey, "invalid TLS private key: it does not belong to the certificate"},
		{"a small RSA key", small, smallKey, "invalid TLS certificate: RSA keys of less than 2048 bits are not supported, this one has 1024"},
		{"no certificate", []byte("hello"), key, "invalid TLS certificate: failed to locate certificate"},
		{"a key for a certificate", key, key, "invalid TLS certificate: unexpected block type 'PRIVATE KEY'"},
		{"two keys", cert, slices.Concat(key, key), "invalid TLS private key: multiple private keys"},
		{"no key", cert, []byte{'x'}, "invalid TLS private key: failed to locate private key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := observed(t, translate.Options{})
			w.apply(service("a", "port: 80") + "\n---\n" + tlsRoot("p", "a.example", "cert") + secretOf("ns", "cert", c.cert, c.key))
			want := c.want
			if want != "" {
				want = `error spec.virtualhost.tls.secretName TLSError/SecretNotValid: Spec.VirtualHost.TLS Secret "cert" is invalid: ` + want
			}
			check(t, "problems", w.problems("p"), want)
			if served := w.chains() != nil; served != (c.want == "") {
				t.Errorf("served: %v", served)
			}
		})
	}
}

// Protection that is not implemented leaves nothing served without it, neither by
// this host nor by the wildcard host above it.
func TestFailClosed(t *testing.T) {
	for _, c := range []struct{ name, virtualHost, problem string }{
		{"authorization", "tls: {secretName: cert}, authorization: {extensionRef: {name: x}}", "error spec.virtualhost.authorization AuthError/NotSupported: spec.virtualhost.authorization is not supported yet"},
		{"client certificates", "tls: {secretName: cert, clientValidation: {caSecret: ca}}", "error spec.virtualhost.tls.clientValidation TLSError/NotSupported: spec.virtualhost.tls.clientValidation is not supported yet"},
		{"IP filter", "tls: {secretName: cert}, ipDenyPolicy: [{source: Peer, cidr: 10.0.0.0/8}]", "error spec.virtualhost.ipDenyPolicy IPFilterError/NotSupported: spec.virtualhost.ipDenyPolicy is not supported yet"},
		{"JWT", "tls: {secretName: cert}, jwtProviders: [{name: x, remoteJWKS: {uri: https://x/}}]", "error spec.virtualhost.jwtProviders JWTVerificationError/NotSupported: spec.virtualhost.jwtProviders is not supported yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := observed(t, translate.Options{})
			w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "*.example") + tlsRoot("wild", "*.example", "cert"))
			w.apply(proxy("p", "virtualhost: {fqdn: a.example, "+c.virtualHost+"}\nroutes: [{"+toA+"}]") + ingress("i", "", oneRule("a.example", "/i", "Prefix", "a")))
			check(t, "http", w.routes("http/a.example"), "/ → 503")
			check(t, "https", w.routes("https/a.example"), "/ → 503")
			check(t, "problems", w.problems("p"), c.problem)
			check(t, "chains", w.chains(), "*.example ns/cert TLSv1_2 TLSv1_3\na.example ns/cert TLSv1_2 TLSv1_3")
		})
	}
}

// An Ingress does not open what an HTTPProxy closed.
func TestFailClosedBesideIngress(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "a.example") +
		proxy("p", "virtualhost: {fqdn: a.example, ipAllowPolicy: [{source: Peer, cidr: 10.0.0.0/8}]}\nroutes: [{"+toA+"}]") +
		ingress("i", "", oneRule("a.example", "/i", "Prefix", "a")+"tls: [{hosts: [a.example], secretName: cert}]"))
	check(t, "http", w.routes("http/a.example"), "/ → 503")
	if w.chains() != nil || w.resource("RouteConfiguration", "https/a.example") != nil {
		t.Error("served over TLS")
	}
}

// Passthrough and tcpproxy are not implemented: the plain host says so.
func TestPassthrough(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + proxy("p", "virtualhost: {fqdn: a.example, tls: {passthrough: true}}\ntcpproxy: {services: [{name: a, port: 80}]}"))
	check(t, "http", w.routes("http/a.example"), "/ → 503")
	check(t, "problems", w.problems("p"), `
error spec.virtualhost.tls.passthrough TLSError/NotSupported: spec.virtualhost.tls.passthrough is not supported yet
error spec.tcpproxy TCPProxyError/NotSupported: spec.tcpproxy is not supported yet`)
	if w.chains() != nil {
		t.Error("there is a chain")
	}
}

// HP-29: a host that does nothing but redirect on the plain listener needs one route
// for that; one whose routes do not match everything keeps them, and says 404.
func TestOnlyRedirects(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "a.example"))
	const host = "virtualhost: {fqdn: a.example, tls: {secretName: cert}}\nroutes:\n"
	for _, c := range []struct{ routes, plain string }{
		{"- {" + toA + "}\n- {conditions: [{prefix: /x}], " + toA + "}", "/ → https"},
		{"- {conditions: [{prefix: /x}], " + toA + "}\n- {conditions: [{prefix: /y}], " + toA + "}", "/y → https\n/x → https"},
		{"- {" + toA + "}\n- {conditions: [{prefix: /x}], permitInsecure: true, " + toA + "}", "/x → ns/a/80\n/ → https"},
	} {
		w.apply(proxy("p", host+c.routes))
		check(t, "http", w.routes("http/a.example"), c.plain)
	}
}
