package translate_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// service writes a Service with the given ports, and a slice with one endpoint.
func service(name string, ports ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec:\n  ports:\n", name)
	for _, p := range ports {
		fmt.Fprintf(&b, "  - {%s}\n", p)
	}
	fmt.Fprintf(&b, "\n---\n%s", slice(name, "8080", "10.0.0.1"))
	return b.String()
}

// slice writes an EndpointSlice with an unnamed port.
func slice(service, port string, addresses ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s-1, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: "", port: %s, protocol: TCP}]
endpoints:
`, service, service, port)
	for _, a := range addresses {
		fmt.Fprintf(&b, "- addresses: [%s]\n", a)
	}
	return b.String() + "\n---\n"
}

// proxy writes an HTTPProxy whose spec follows.
func proxy(name, spec string) string {
	return fmt.Sprintf("apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {name: %s}\nspec:\n%s\n---\n", name, indent(spec))
}

// root writes a root HTTPProxy with one route to Service a.
func root(name, fqdn string) string {
	return proxy(name, fmt.Sprintf("virtualhost: {fqdn: %s}\nroutes: [{services: [{name: a, port: 80}]}]", fqdn))
}

// tlsRoot is a root with a certificate.
func tlsRoot(name, fqdn, secret string) string {
	return proxy(name, fmt.Sprintf("virtualhost: {fqdn: %q, tls: {secretName: %s}}\nroutes: [{services: [{name: a, port: 80}]}]", fqdn, secret))
}

// ingress writes an Ingress whose spec follows.
func ingress(name, annotations, spec string) string {
	return fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: %s, annotations: {%s}}\nspec:\n%s\n---\n", name, annotations, indent(spec))
}

// oneRule is the spec of an Ingress with one path.
func oneRule(host, path, kind, service string) string {
	return fmt.Sprintf(`rules:
- host: %q
  http:
    paths: [{path: %q, pathType: %s, backend: {service: {name: %s, port: {number: 80}}}}]
`, host, path, kind, service)
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}

// secretOf writes a TLS Secret.
func secretOf(namespace, name string, cert, key []byte) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\ntype: kubernetes.io/tls\nmetadata: {namespace: %s, name: %s}\ndata: {tls.crt: %s, tls.key: %s}\n---\n",
		namespace, name, base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key))
}

// certificateFor makes a certificate and its key.
func certificateFor(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signed(t, name, &k.PublicKey, k)
}

func rsaCertificateFor(t *testing.T, name string, bits int) (cert, key []byte) {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return signed(t, name, &k.PublicKey, k)
}

func signed(t *testing.T, name string, public, private any) (cert, key []byte) {
	t.Helper()
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

func tlsSecret(t *testing.T, namespace, name, host string) string {
	t.Helper()
	cert, key := certificateFor(t, host)
	return secretOf(namespace, name, cert, key)
}

// broken is a Secret whose key is cut short.
func broken(t *testing.T, namespace, name string) string {
	t.Helper()
	cert, key := certificateFor(t, "broken.example")
	return secretOf(namespace, name, cert, bytes.ReplaceAll(key, []byte("-----END"), []byte("-----")))
}
