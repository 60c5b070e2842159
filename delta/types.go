package delta

import (
	"slices"
	"strings"
)

// The resource types, by type URL.
const (
	Cluster            = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	Endpoints          = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	Listener           = "type.googleapis.com/envoy.config.listener.v3.Listener"
	ScopedRoutes       = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	RouteConfiguration = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	Secret             = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// order is the order in which responses of one step leave: clusters and, right
// behind them, endpoints; then what refers to clusters. Secrets come before
// routes since a listener that warms waits for both.
var order = []string{Cluster, Endpoints, Listener, Secret, ScopedRoutes, RouteConfiguration}

// wildcardByDefault tells for which types a first request without names asks for
// everything ("legacy wildcard"). For the others it asks for nothing.
func wildcardByDefault(typeURL string) bool {
	return typeURL == Cluster || typeURL == Listener || typeURL == ScopedRoutes
}

// Types gives the resource types in the order in which responses of one step
// leave.
func Types() []string { return slices.Clone(order) }

// ShortType gives the last part of a type URL, as people say it: "Cluster".
func ShortType(url string) string { return url[strings.LastIndexAny(url, "./")+1:] }
