package translate

import (
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// HostDerivations names the derivations that make what a host is served by: its
// routes and its filter chain, or the fallback for hosts with a wildcard. Those that
// do not exist have not run.
func HostDerivations(host string) []index.DerivationID {
	out := []index.DerivationID{derivation(formHost, host), derivation(formTLS, host)}
	if isWildcard(host) {
		out = append(out, rootFallback)
	}
	return out
}

// ListenerDerivations names those that make the listeners.
func ListenerDerivations() []index.DerivationID {
	return []index.DerivationID{rootHTTPListener, rootHTTPSListener}
}

// Subject gives what a derivation is about: its form and name. Forms are "host",
// "tls", "secret", "cluster", "endpoints", "child", "listener" and "fallback".
func Subject(id index.DerivationID) (form, name string) { return split(id) }

// HostsOf gives the hosts that an object has a say in.
func HostsOf(o *index.Object) []string {
	var out []string
	for _, l := range o.Lookups {
		for _, sign := range []string{lookupFQDN(""), lookupHost("")} {
			if host, ok := strings.CutPrefix(l, sign); ok && host != "" {
				out = append(out, host)
			}
		}
	}
	return out
}

// Hosts gives every host that some object names, sorted, whether or not it can be
// served.
func Hosts(s *index.Snapshot) []string {
	var out []string
	for _, k := range []index.Kind{kinds.HTTPProxy, kinds.Ingress} {
		for o := range s.Objects(k) {
			out = append(out, HostsOf(o)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// PlainListener and SecureListener are the names of the listeners.
const (
	PlainListener  = listenerHTTP
	SecureListener = listenerHTTPS
)

// RouteNames gives the names that a host's RouteConfigurations have: on the plain
// listener, where hosts with a wildcard share one, and behind TLS.
func RouteNames(host string) []string {
	if isWildcard(host) {
		return []string{nameFallback, planeHTTPS + host}
	}
	return []string{planeHTTP + host, planeHTTPS + host}
}
