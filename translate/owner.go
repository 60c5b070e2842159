package translate

import (
	"cmp"
	"slices"
	"strings"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// claim is a root HTTPProxy that wants an fqdn.
type claim struct {
	object *index.Object
	proxy  *contourv1.HTTPProxy
}

func (c *claim) name() string { return c.proxy.Namespace + "/" + c.proxy.Name }

// claims gives the HTTPProxies that name the fqdn, oldest first.
//
// With none, unseen ones could only add; with one, an unseen older one would win.
func claims(r *index.Reader, fqdn string) []claim {
	found := r.Range(kinds.HTTPProxy, lookupFQDN(fqdn), index.NeedMonotone)
	if len(found) == 0 {
		return nil
	}
	r.Range(kinds.HTTPProxy, lookupFQDN(fqdn), index.NeedStrict)
	out := make([]claim, 0, len(found))
	for _, o := range found {
		out = append(out, claim{o, o.Body.(*contourv1.HTTPProxy)})
	}
	slices.SortStableFunc(out, func(a, b claim) int {
		return cmp.Or(
			a.proxy.CreationTimestamp.Compare(b.proxy.CreationTimestamp.Time),
			cmp.Compare(a.name(), b.name()),
		)
	})
	return out
}

// verdict is what becomes of one claim.
type verdict struct {
	claim
	fault *fault // nil for the owner
}

// judge settles who owns the fqdn: at most one verdict has no fault. A claim
// from a namespace that must not hold roots can't take a host from others.
func (x *Rules) judge(fqdn string, all []claim) []verdict {
	out := make([]verdict, 0, len(all))
	var allowed []claim
	for _, c := range all {
		if f := x.barred(fqdn, c); f != nil {
			out = append(out, verdict{c, f})
			continue
		}
		allowed = append(allowed, c)
	}
	for i, c := range allowed {
		var f *fault
		if len(allowed) > 1 && (i > 0 || x.opts.FQDNConflict == RejectAll) {
			f = x.conflict(fqdn, allowed)
		}
		if f == nil {
			f = rootFault(c.proxy)
		}
		out = append(out, verdict{c, f})
	}
	return out
}

func (x *Rules) barred(fqdn string, c claim) *fault {
	const field = "spec.virtualhost.fqdn"
	switch {
	case strings.TrimSpace(fqdn) == "":
		return faultf(field, virtualHostError, "FQDNNotSpecified", "Spec.VirtualHost.Fqdn must be specified")
	case !x.opts.rootAllowed(c.proxy.Namespace):
		return faultf("metadata.namespace", rootNamespaceError, "RootProxyNotAllowedInNamespace", "root HTTPProxy cannot be defined in this namespace")
	case !validHost(fqdn):
		return faultf(field, virtualHostError, "FQDNNotValid", "Spec.VirtualHost.Fqdn %q is not a DNS name", fqdn)
	}
	return nil
}

// validHost: a DNS name, which may have "*" as its first label.
func validHost(host string) bool {
	return len(validation.IsDNS1123Subdomain(strings.TrimPrefix(host, "*."))) == 0
}

func (x *Rules) conflict(fqdn string, all []claim) *fault {
	names := make([]string, 0, len(all))
	for _, c := range all {
		names = append(names, c.name())
	}
	slices.Sort(names)
	f := faultf("spec.virtualhost.fqdn", virtualHostError, "DuplicateVhost",
		"fqdn %q is used in multiple HTTPProxies: %s", fqdn, strings.Join(names, ", "))
	if x.opts.FQDNConflict == KeepOldest {
		f.message += "; the oldest, " + all[0].name() + ", is served"
	}
	return f
}

// rootFault finds what makes a root as a whole invalid, whatever it refers to.
func rootFault(p *contourv1.HTTPProxy) *fault {
	if len(p.Spec.Routes) == 0 && len(p.Spec.Includes) == 0 && p.Spec.TCPProxy == nil {
		return faultf("spec", specError, "NothingDefined", "HTTPProxy.Spec must have at least one Route, Include, or a TCPProxy")
	}
	if t := p.Spec.VirtualHost.TLS; t != nil {
		if f := tlsFault(t); f != nil {
			return f
		}
	}
	if p.Spec.TCPProxy != nil && p.Spec.VirtualHost.TLS == nil {
		return faultf("spec.tcpproxy", tcpProxyError, "TLSMustBeConfigured",
			"Spec.TCPProxy requires that either Spec.TLS.Passthrough or Spec.TLS.SecretName be set")
	}
	return nil
}

func tlsFault(t *contourv1.TLS) *fault {
	const field = "spec.virtualhost.tls"
	named := strings.TrimSpace(t.SecretName) != ""
	switch {
	case named && t.Passthrough:
		return faultf(field, tlsError, "TLSConfigNotValid", "Spec.VirtualHost.TLS: both Passthrough and SecretName were specified")
	case !named && !t.Passthrough:
		return faultf(field, tlsError, "TLSConfigNotValid", "Spec.VirtualHost.TLS: neither Passthrough nor SecretName were specified")
	case t.Passthrough && t.EnableFallbackCertificate:
		return faultf(field, tlsError, "TLSIncompatibleFeatures", "Spec.VirtualHost.TLS: both Passthrough and enableFallbackCertificate were specified")
	case t.Passthrough && t.ClientValidation != nil:
		return faultf(field, tlsError, "TLSIncompatibleFeatures", "Spec.VirtualHost.TLS passthrough cannot be combined with tls.clientValidation")
	}
	if v := proxyVersions(t); v.low > v.high {
		return faultf(field, tlsError, "TLSConfigNotValid", "Spec.Virtualhost.TLS the minimum protocol version is greater than the maximum protocol version")
	}
	return nil
}

// owner gives the HTTPProxy that owns the fqdn and is fit to be served, as far
// as it alone can tell.
func (x *Rules) owner(r *index.Reader, fqdn string) (claim, bool) {
	for _, v := range x.judge(fqdn, claims(r, fqdn)) {
		if v.fault == nil {
			return v.claim, true
		}
	}
	return claim{}, false
}
