package main

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/holdfast-xds/holdfast/translate"
)

// rulesFlags say how objects become configuration; serve and translate share them.
type rulesFlags struct {
	httpAddress, httpsAddress        string
	ingressClassName, rootNamespaces string
	fqdnConflict, tls, minimumTLS    string
}

func (r *rulesFlags) register(f *pflag.FlagSet) {
	f.StringVar(&r.httpAddress, "http-address", "0.0.0.0:8080", "address on which Envoy listens for HTTP")
	f.StringVar(&r.httpsAddress, "https-address", "0.0.0.0:8443", "address on which Envoy listens for HTTPS")
	f.StringVar(&r.ingressClassName, "ingress-class-name", "", `ingress classes to serve, separated by commas; empty: "contour" and objects without a class`)
	f.StringVar(&r.rootNamespaces, "root-namespaces", "", "namespaces in which an HTTPProxy may own a host, separated by commas; empty: all")
	f.StringVar(&r.fqdnConflict, "fqdn-conflict", "oldest", `who serves a host that two HTTPProxies claim: "oldest", or none of them: "reject-all"`)
	f.StringVar(&r.minimumTLS, "minimum-tls-version", "1.2", `lowest TLS version that any host accepts, "1.2" or "1.3"; a host may ask for a higher one`)
	f.StringVar(&r.tls, "tls", "chains", `how Envoy finds certificates: by a filter chain for each host, "chains", or "on-demand", for thousands of TLS hosts`)
}

// rules makes the checked rules.
func (r *rulesFlags) rules() (*translate.Rules, error) {
	o := translate.Options{
		HTTPAddress: r.httpAddress, HTTPSAddress: r.httpsAddress,
		IngressClassNames: splitList(r.ingressClassName), RootNamespaces: splitList(r.rootNamespaces),
		FQDNConflict: translate.FQDNConflict(r.fqdnConflict), TLS: translate.TLSMode(r.tls),
		MinimumTLS: r.minimumTLS,
	}
	if err := o.Validate(); err != nil {
		return nil, usageError{err}
	}
	return translate.New(o), nil
}

// splitList reads a list with commas; spaces and empty elements do not count.
func splitList(s string) []string {
	var out []string
	for x := range strings.SplitSeq(s, ",") {
		if x = strings.TrimSpace(x); x != "" {
			out = append(out, x)
		}
	}
	return out
}
