package translate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// FQDNConflict says what becomes of HTTPProxies that claim the same fqdn.
type FQDNConflict string

// The ways to settle a conflict.
const (
	// KeepOldest serves the oldest HTTPProxy; the others are invalid.
	KeepOldest FQDNConflict = "oldest"
	// RejectAll makes all of them invalid, as Contour does.
	RejectAll FQDNConflict = "reject-all"
)

// TLSMode says how Envoy comes by the certificate for a server name.
type TLSMode string

// The modes. docs/tls.md says when to use which.
const (
	// Chains gives each TLS host a filter chain of its own.
	Chains TLSMode = "chains"
	// OnDemand serves all TLS hosts by one filter chain that never changes; see
	// ondemand.go.
	OnDemand TLSMode = "on-demand"
)

// Options are the settings of the whole translation.
type Options struct {
	// HTTPAddress and HTTPSAddress are where Envoy listens, as ip:port. Default
	// 0.0.0.0:8080 and 0.0.0.0:8443.
	HTTPAddress, HTTPSAddress string
	// IngressClassNames are the classes that are served. When empty, objects
	// without a class and those of class "contour" are.
	IngressClassNames []string
	// RootNamespaces are the namespaces that may hold root HTTPProxies; empty
	// means all.
	RootNamespaces []string
	// FQDNConflict defaults to KeepOldest.
	FQDNConflict FQDNConflict
	// TLS defaults to Chains.
	TLS TLSMode
	// MinimumTLS is the lowest protocol version of any host, "1.2" (the default) or
	// "1.3". A host may ask for a higher one.
	MinimumTLS string
}

// withDefaults fills what is not set.
func (o Options) withDefaults() Options {
	if o.HTTPAddress == "" {
		o.HTTPAddress = "0.0.0.0:8080"
	}
	if o.HTTPSAddress == "" {
		o.HTTPSAddress = "0.0.0.0:8443"
	}
	if o.FQDNConflict == "" {
		o.FQDNConflict = KeepOldest
	}
	if o.TLS == "" {
		o.TLS = Chains
	}
	if o.MinimumTLS == "" {
		o.MinimumTLS = tls12
	}
	return o
}

// Validate names the first option that is not usable.
func (o Options) Validate() error {
	o = o.withDefaults()
	http, err := parseAddress(o.HTTPAddress)
	if err != nil {
		return fmt.Errorf("http address: %w", err)
	}
	https, err := parseAddress(o.HTTPSAddress)
	if err != nil {
		return fmt.Errorf("https address: %w", err)
	}
	if http == https {
		return fmt.Errorf("http and https address are both %s", http)
	}
	if o.FQDNConflict != KeepOldest && o.FQDNConflict != RejectAll {
		return fmt.Errorf("fqdn conflict %q: want %q or %q", o.FQDNConflict, KeepOldest, RejectAll)
	}
	if o.TLS != Chains && o.TLS != OnDemand {
		return fmt.Errorf("tls %q: want %q or %q", o.TLS, Chains, OnDemand)
	}
	if o.MinimumTLS != tls12 && o.MinimumTLS != tls13 {
		return fmt.Errorf("minimum tls version %q: want %q or %q", o.MinimumTLS, tls12, tls13)
	}
	if slices.Contains(o.IngressClassNames, "") {
		return fmt.Errorf("ingress class names: one of %q is empty", o.IngressClassNames)
	}
	for _, ns := range o.RootNamespaces {
		if msgs := validation.IsDNS1123Label(ns); len(msgs) > 0 {
			return fmt.Errorf("root namespace %q: %s", ns, strings.Join(msgs, ", "))
		}
	}
	return nil
}

func parseAddress(s string) (netip.AddrPort, error) {
	a, err := netip.ParseAddrPort(s)
	if err != nil {
		return a, fmt.Errorf("%q is not ip:port", s)
	}
	if a.Port() == 0 {
		return a, fmt.Errorf("%q has no port", s)
	}
	return a, nil
}

// rootAllowed reports whether a root HTTPProxy may live in the namespace.
func (o *Options) rootAllowed(namespace string) bool {
	return len(o.RootNamespaces) == 0 || slices.Contains(o.RootNamespaces, namespace)
}
