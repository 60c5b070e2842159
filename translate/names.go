package translate

import (
	"strconv"
	"strings"

	"github.com/holdfast-xds/holdfast/index"
)

// The resource types, by type URL.
const (
	typeCluster   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	typeEndpoints = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	typeListener  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	typeScope     = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	typeRoutes    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	typeSecret    = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// The forms of derivations: what stands before the first slash of their id.
const (
	formHost      = "host"      // host/<fqdn>: routes
	formTLS       = "tls"       // tls/<fqdn>: the filter chain
	formSecret    = "secret"    // secret/<namespace>/<name>
	formCover     = "cover"     // cover/<wildcard>: has it a filter chain? On demand only
	formPrefetch  = "prefetch"  // prefetch/<group>: a hidden listener. On demand only
	formCluster   = "cluster"   // cluster/<name of the cluster>
	formEndpoints = "endpoints" // endpoints/<name of the ClusterLoadAssignment>
	formChild     = "child"     // child/<namespace>/<name>: is the HTTPProxy included?
)

// The derivations that always exist.
const (
	rootFallback      index.DerivationID = "fallback/http"
	rootHTTPListener  index.DerivationID = "listener/http"
	rootHTTPSListener index.DerivationID = "listener/https"
)

// The forms of facts.
const (
	factChain    = "chain"    // chain/<fqdn>: chainFact
	factWildcard = "wildcard" // wildcard/<fqdn>: wildcardFact
	factSecret   = "secret"   // secret/<namespace>/<name>: a good version exists; on demand: that, a Secret
	factCover    = "cover"    // cover/<wildcard>: it has a filter chain
	factCovered  = "covered"  // covered/<fqdn>: it hasn't, and lies below a wildcard that has
	// <group>/<fqdn>: the host's certificate is prefetched, by the hidden listener <group>.
)

// Names of listeners. Scopes and RouteConfigurations are named <plane>/<fqdn>.
const (
	listenerHTTP  = "ingress_http"
	listenerHTTPS = "ingress_https"
	planeHTTP     = "http/"
	planeHTTPS    = "https/"
	anyHost       = "*"
	nameFallback  = planeHTTP + anyHost
)

// Names inside Envoy's configuration.
const (
	headerScope       = "x-holdfast-scope" // carries the scope's key between filters
	filterFallback    = "holdfast.fallback"
	filterMisdirected = "holdfast.misdirected"
)

func derivation(form, subject string) index.DerivationID {
	return index.DerivationID(form + "/" + subject)
}

// split gives a derivation's form and subject.
func split(id index.DerivationID) (form, subject string) {
	form, subject, _ = strings.Cut(string(id), "/")
	return form, subject
}

func resourceKey(typeURL, name string) index.ResourceKey {
	return index.ResourceKey{Type: typeURL, Name: name}
}

func keys(typeURL string, names []string) []index.ResourceKey {
	out := make([]index.ResourceKey, 0, len(names))
	for _, n := range names {
		out = append(out, index.ResourceKey{Type: typeURL, Name: n})
	}
	return out
}

// routeName says where a route comes from: HTTPProxy/ns/name/spec.routes[0].
func routeName(k index.ObjectKey, field string) string {
	return string(k.Kind) + "/" + k.Namespace + "/" + k.Name + "/" + field
}

func item(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// isWildcard reports whether a host's routes live in the fallback
// RouteConfiguration: *.x.y, and the default host.
func isWildcard(fqdn string) bool { return strings.HasPrefix(fqdn, anyHost) }

// qualified reads a reference "name" or "namespace/name".
func qualified(ref, namespace string) (string, string) {
	if ns, name, ok := strings.Cut(ref, "/"); ok {
		return ns, name
	}
	return namespace, ref
}
