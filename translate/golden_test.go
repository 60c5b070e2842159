package translate_test

import (
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/translate"
)

// What is there in an empty cluster; the other goldens leave it out.
var always = []string{"Listener ingress_http", "RouteConfiguration http/*", "ScopedRouteConfiguration http/*"}

func TestGoldenEmpty(t *testing.T) {
	observed(t, translate.Options{}).golden("empty.yaml")
}

// HP-10, HP-60, HP-70: the plainest host.
func TestGoldenPlain(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + root("p", "a.example"))
	w.golden("plain.yaml", always...)
}

// HP-41, HP-42, HP-45, HP-48, HP-49, HP-54, HP-55, HP-72, HP-74, HP-76.
func TestGoldenPolicies(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + service("b", "port: 80") + "\n---\n" + proxy("p", `
virtualhost: {fqdn: a.example}
routes:
- conditions: [{prefix: /headers}]
  services: [{name: a, port: 80}]
  requestHeadersPolicy:
    set:
    - {name: x-b, value: "100% of %REQ(x-c)% in %CONTOUR_NAMESPACE%, %HOSTNAME%, %NO_SUCH%"}
    - {name: x-a, value: a}
    - {name: host, value: "%REQ(x-host)%"}
    remove: [x-d]
  responseHeadersPolicy: {set: [{name: x-e, value: e}], remove: [x-f]}
- conditions: [{prefix: /service}]
  services:
  - name: a
    port: 80
    protocol: tls
    requestHeadersPolicy: {set: [{name: host, value: b.test}, {name: x, value: "%CONTOUR_SERVICE_NAME%:%CONTOUR_SERVICE_PORT%"}]}
  - {name: b, port: 80, mirror: true, weight: 30}
- conditions: [{prefix: /time}]
  services: [{name: a, port: 80, protocol: h2}]
  enableWebsockets: true
  timeoutPolicy: {response: 1m, idle: infinity, idleConnection: 5s}
  retryPolicy: {count: 2, perTryTimeout: 300ms, retryOn: [connect-failure, retriable-status-codes], retriableStatusCodes: [503]}
- conditions: [{prefix: /redirect}]
  requestRedirectPolicy: {scheme: https, hostname: b.example, port: 8443, statusCode: 308, prefix: /r}
- conditions: [{prefix: /direct}]
  directResponsePolicy: {statusCode: 418, body: teapot}`))
	w.golden("policies.yaml", append(always, "ClusterLoadAssignment", "ScopedRouteConfiguration")...)
}

// HP-03, HP-20, HP-29: a wildcard TLS host.
func TestGoldenWildcardTLS(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "*.example") + tlsRoot("p", "*.example", "cert"))
	w.golden("wildcard-tls.yaml", "Listener ingress_http", "Cluster", "ClusterLoadAssignment", "Secret")
}

// IN-04, Ingress annotations of routes.
func TestGoldenIngress(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + ingress("i",
		`projectcontour.io/retry-on: "5xx", projectcontour.io/num-retries: "-1", projectcontour.io/per-try-timeout: 1s, projectcontour.io/request-timeout: 2s, projectcontour.io/websocket-routes: "/ws , /"`,
		oneRule("a.example", "/ws", "Prefix", "a")))
	w.golden("ingress.yaml", append(always, "Cluster", "ClusterLoadAssignment", "ScopedRouteConfiguration")...)
}

// Names and bytes are an interface: an upgrade that changes none of these sends
// nothing to an Envoy that comes back.
func TestDigests(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + root("p", "a.example") + root("wild", `"*.example"`))
	want := map[string]index.Digest{
		"Cluster ns/a/80":                         0x97ec05ba02596104,
		"ClusterLoadAssignment ns/a/80":           0x5b8e5565bd3e85d,
		"Listener ingress_http":                   0x3319c4ab534f723b,
		"ScopedRouteConfiguration http/*":         0xf917868b4377a4a9,
		"ScopedRouteConfiguration http/a.example": 0xcb55f9629ac9c3c1,
		"RouteConfiguration http/*":               0xe10fa93cf6938d3f,
		"RouteConfiguration http/a.example":       0x97f4d3a8b6599d98,
	}
	for r := range w.resources() {
		if d, ok := want[shortKey(r)]; !ok || d != r.Digest {
			t.Errorf("%q: %#x,", shortKey(r), uint64(r.Digest))
		}
		delete(want, shortKey(r))
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}
