// Package translate says what Kubernetes objects mean to Envoy. Its Rules are
// the pure, incremental half of holdfast: package index stores objects, and runs
// the derivations here when something that they read has changed.
//
//	HTTPProxy ─┐            ┌─ http/<fqdn>   RouteConfiguration, ScopedRouteConfiguration
//	Ingress  ──┼─ host/… ───┼─ https/<fqdn>  RouteConfiguration
//	Service  ──┘     │      └─ fact wildcard/<fqdn> ── fallback ── http/*
//	                 └─ demands cluster/… ── demands endpoints/…
//	HTTPProxy ─┐
//	Ingress  ──┼─ tls/… ──── fact chain/<fqdn> ── listener/https ── ingress_https
//	Delegation ┘     └─ demands secret/…
//
// With on-demand certificates (Options.TLS; ondemand.go) it is instead
//
//	tls/… ─┬─ Secret <fqdn>
//	       ├─ fact prefetch_<group>/<fqdn> ── prefetch/… ── hidden listeners
//	       └─ for some hosts: Secret chain/<fqdn>, fact chain/<fqdn> as above
//	host/… ── ScopedRouteConfiguration https/<fqdn>
//
// A Secret is asked for by the name that a client wrote. When that is not in lower
// case it has no resource: the host's answers under the other name
// (index.Aliasing), so it changes and goes with that.
//
// A host is derived twice: host/<fqdn> makes its routes, tls/<fqdn> its filter
// chain, so that a chain never rests on Services nor a plain route on Secrets of
// an Ingress.
//
// # What rests on absence
//
// Each rule below says in which way it relies on objects that are not there.
//
//   - The owner of an fqdn (the oldest HTTPProxy) is strict on HTTPProxy: an
//     unseen older one would own it. When no HTTPProxy with the fqdn was found it
//     is monotone: an unseen one takes nothing from a client that holds nothing
//     of an HTTPProxy.
//   - The Ingresses of a host, the EndpointSlices of a Service and the
//     delegations of a Secret are monotone: more of them only add.
//   - A Service, an included HTTPProxy or a Secret that is not found is missing:
//     the 503, the 502 and the invalid host need the complete kind. Until then the
//     derivation keeps the route, and the index holds the result back.
//   - An empty ClusterLoadAssignment relies on the absence of EndpointSlices.
//   - A cluster, its endpoints and a secret go when nobody demands them: that
//     needs every kind that can demand them.
//   - Listeners and the fallback RouteConfiguration are closed-world: a client
//     that holds nothing gets them when all kinds that feed hosts are complete, so
//     that a fresh Envoy is never ready with part of the configuration. They are
//     monotone on these kinds, so a client that holds one is held back only by
//     kinds that its version was made from. A filter chain that goes because its
//     HTTPProxy, Ingress, Secret or delegation was not seen is such a case: the
//     version that had the chain names the kind, and the shrunken listener waits
//     for it. A kind that no chain was made from (Service, EndpointSlice) never
//     holds back a change.
//
// # Failing closed
//
// A virtual host or route that asks for protection which this package does not
// implement answers 503 in its place, rather than being left out: left out, its
// requests would reach a wildcard host or a shorter prefix that lacks the
// protection too. What is merely additive is served without, with a warning.
//
// Names and bytes are an interface: golden tests in testdata hold them. Tests
// apply YAML to a real index and compare what comes out.
package translate
