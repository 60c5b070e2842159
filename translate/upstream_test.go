package translate_test

import (
	"fmt"
	"strings"
	"testing"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// names gives the names of the resources of a type.
func (w *world) names(short string) []string {
	var out []string
	for r := range w.resources() {
		if s, ok := strings.CutPrefix(shortKey(r), short+" "); ok {
			out = append(out, s)
		}
	}
	return out
}

// endpoints gives the addresses of a ClusterLoadAssignment.
func (w *world) endpoints(name string) string {
	w.t.Helper()
	r := w.resource("ClusterLoadAssignment", name)
	if r == nil {
		return "none"
	}
	m, err := translate.Decode(r)
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, l := range m.(*endpointv3.ClusterLoadAssignment).Endpoints {
		for _, e := range l.LbEndpoints {
			a := e.GetEndpoint().Address.GetSocketAddress()
			out = append(out, fmt.Sprintf("%s:%d", a.Address, a.GetPortValue()))
		}
	}
	return strings.Join(out, " ")
}

// HP-72, SV-01, SV-03: the field wins over appProtocol, which wins over the
// annotation. The protocol is part of the cluster's name.
func TestProtocol(t *testing.T) {
	const plain, tls, h2, h2c = "ns/a/80", "ns/a/80/8725b8e2", "ns/a/80/ce41aa9f", "ns/a/80/25e6c3fb"
	for _, c := range []struct{ name, port, annotations, field, want string }{
		{"plain", "port: 80", "", "", plain},
		{"field", "port: 80", "", "h2", h2},
		{"appProtocol", "port: 80, appProtocol: https", "", "", tls},
		{"appProtocol h2c", "port: 80, appProtocol: kubernetes.io/h2c", "", "", h2c},
		{"appProtocol http wins over the annotation", "port: 80, appProtocol: http", `projectcontour.io/upstream-protocol.tls: "80"`, "", plain},
		{"annotation by number", "port: 80", `projectcontour.io/upstream-protocol.h2c: "443, 80"`, "", h2c},
		{"annotation by name", "port: 80, name: web", `projectcontour.io/upstream-protocol.tls: web`, "", tls},
		{"the field wins", "port: 80, appProtocol: https", `projectcontour.io/upstream-protocol.tls: "80"`, "h2c", h2c},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := observed(t, translate.Options{})
			w.apply(strings.Replace(service("a", c.port), "{name: a}", "{name: a, annotations: {"+c.annotations+"}}", 1))
			field := ""
			if c.field != "" {
				field = ", protocol: " + c.field
			}
			w.apply(proxy("p", "virtualhost: {fqdn: a.example}\nroutes: [{services: [{name: a, port: 80"+field+"}]}]"))
			check(t, "clusters", w.names("Cluster"), c.want)
		})
	}
}

// HF-14: what differs never shares a cluster; what does not, does.
func TestClusterIdentity(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + proxy("p", `
virtualhost: {fqdn: a.example}
routes:
- {`+toA+`}
- {conditions: [{prefix: /same}], `+toA+`}
- {conditions: [{prefix: /tls}], services: [{name: a, port: 80, protocol: tls}]}
- {conditions: [{prefix: /sni}], services: [{name: a, port: 80, protocol: tls}], requestHeadersPolicy: {set: [{name: Host, value: sni.test}]}}
- {conditions: [{prefix: /idle}], `+toA+`, timeoutPolicy: {idleConnection: 5s}}
- {conditions: [{prefix: /never}], `+toA+`, timeoutPolicy: {idleConnection: infinity}}
- {conditions: [{prefix: /host}], `+toA+`, requestHeadersPolicy: {set: [{name: Host, value: sni.test}]}}`))
	if got := w.names("Cluster"); len(got) != 5 {
		t.Errorf("clusters %v", got)
	}
	check(t, "endpoints", w.names("ClusterLoadAssignment"), "ns/a/80")
}

// SV-04: one assignment unites all slices of the Service.
func TestEndpoints(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + root("p", "a.example"))
	check(t, "one", []string{w.endpoints("ns/a/80")}, "10.0.0.1:8080")
	w.apply(strings.Replace(slice("a", "8080", "10.0.0.3", "10.0.0.1"), "name: a-1", "name: a-2", 1))
	w.apply(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a-6, labels: {kubernetes.io/service-name: a}}
addressType: IPv6
ports: [{port: 9090}, {port: 9091, protocol: UDP}]
endpoints:
- {addresses: ["fd99::1", "fd99::2"]}
- {addresses: ["fd99::3"], conditions: {ready: false, serving: true, terminating: true}}`)
	check(t, "three", []string{w.endpoints("ns/a/80")}, "10.0.0.1:8080 10.0.0.3:8080 fd99::1:9090")
	w.remove(kinds.EndpointSlice, "ns", "a-1")
	w.remove(kinds.EndpointSlice, "ns", "a-6")
	check(t, "two", []string{w.endpoints("ns/a/80")}, "10.0.0.1:8080 10.0.0.3:8080")
	// HF-17: a slice that changes its Service leaves one and joins the other.
	w.apply(strings.Replace(slice("b", "8080", "10.0.0.9"), "name: b-1", "name: a-2", 1))
	check(t, "moved", []string{w.endpoints("ns/a/80")}, "")
	w.apply("apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {ports: [{port: 80}]}\n---\n" + proxy("p2", "virtualhost: {fqdn: b.example}\nroutes: [{"+toB+"}]"))
	check(t, "moved", []string{w.endpoints("ns/b/80")}, "10.0.0.9:8080")
}

// SV-04: slices have different numbers for the same port name.
func TestNamedPorts(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(`apiVersion: v1
kind: Service
metadata: {name: a}
spec: {ports: [{name: one, port: 80}, {name: "81", port: 81}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a-1, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: one, port: 8080}, {name: "81", port: 8081}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a-2, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: one, port: 9090}]
endpoints: [{addresses: [10.0.0.2]}]
---
` + proxy("p", "virtualhost: {fqdn: a.example}\nroutes: [{services: [{name: a, port: 80}, {name: a, port: 81}]}]"))
	check(t, "one", []string{w.endpoints("ns/a/one")}, "10.0.0.1:8080 10.0.0.2:9090")
	check(t, "81", []string{w.endpoints("ns/a/name=81")}, "10.0.0.1:8081")
	check(t, "clusters", w.names("Cluster"), "ns/a/80\nns/a/81")
}

// A Service whose port gets a name keeps its cluster, with other endpoints.
func TestPortIsRenamed(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + root("p", "a.example"))
	w.apply("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80, name: web}]}")
	check(t, "clusters", w.names("Cluster"), "ns/a/80")
	check(t, "endpoints", w.names("ClusterLoadAssignment"), "ns/a/web")
	if refs := w.resource("Cluster", "ns/a/80").Refs; len(refs) != 1 || refs[0].Name != "ns/a/web" {
		t.Errorf("the cluster refers to %v", refs)
	}
}

// HP-70: an ExternalName Service is not followed.
func TestExternalName(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: ExternalName, externalName: localhost, ports: [{port: 80}]}\n---\n" + root("p", "a.example"))
	check(t, "routes", w.routes("http/a.example"), "/ → 503")
}
