package translate

import (
	"strings"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// The lookups, by which derivations find objects:
//
//	HTTPProxy                 fqdn=<fqdn>            roots
//	HTTPProxy                 include=<ns>/<name>    those that include it
//	Ingress                   host=<host>            with rules or TLS for it
//	EndpointSlice             service=<ns>/<name>
//	TLSCertificateDelegation  secret=<ns>/<name>     that it delegates
//
// Objects of another ingress class have none: they are never found by a range.
func lookupFQDN(fqdn string) string           { return "fqdn=" + fqdn }
func lookupInclude(ns, name string) string    { return "include=" + ns + "/" + name }
func lookupHost(host string) string           { return "host=" + host }
func lookupSlices(ns, service string) string  { return "service=" + ns + "/" + service }
func lookupDelegation(ns, name string) string { return "secret=" + ns + "/" + name }

// Prepare fills an object's lookups, and parses a Secret's certificate once.
func (x *Rules) Prepare(o *index.Object) {
	switch b := o.Body.(type) {
	case *contourv1.HTTPProxy:
		o.Lookups = x.proxyLookups(b)
	case *networkingv1.Ingress:
		for _, h := range x.ingressHosts(b) {
			o.Lookups = append(o.Lookups, lookupHost(h))
		}
	case *discoveryv1.EndpointSlice:
		if s := b.Labels[discoveryv1.LabelServiceName]; s != "" {
			o.Lookups = []string{lookupSlices(b.Namespace, s)}
		}
	case *contourv1.TLSCertificateDelegation:
		o.Lookups = delegationLookups(b)
	case *corev1.Secret:
		o.Note = examine(b)
	}
}

func (x *Rules) proxyLookups(p *contourv1.HTTPProxy) []string {
	if !x.opts.servesProxy(p) {
		return nil
	}
	var out []string
	if p.Spec.VirtualHost != nil {
		out = append(out, lookupFQDN(fqdnOf(p)))
	}
	for _, inc := range p.Spec.Includes {
		out = appendNew(out, lookupInclude(includeTarget(p, inc)))
	}
	if t := p.Spec.TCPProxy; t != nil {
		for _, inc := range []*contourv1.TCPProxyInclude{t.Include, t.IncludesDeprecated} {
			if inc != nil {
				out = appendNew(out, lookupInclude(orDefault(inc.Namespace, p.Namespace), inc.Name))
			}
		}
	}
	return out
}

func delegationLookups(d *contourv1.TLSCertificateDelegation) []string {
	var out []string
	for _, c := range d.Spec.Delegations {
		out = appendNew(out, lookupDelegation(d.Namespace, c.SecretName))
	}
	return out
}

// Subjects are the derivations that an object may bring into being.
func (x *Rules) Subjects(o *index.Object) []index.DerivationID {
	switch b := o.Body.(type) {
	case *contourv1.HTTPProxy:
		return x.proxySubjects(b)
	case *networkingv1.Ingress:
		return x.ingressSubjects(b)
	default:
		return nil
	}
}

func (x *Rules) proxySubjects(p *contourv1.HTTPProxy) []index.DerivationID {
	switch {
	case !x.opts.servesProxy(p):
		return nil
	case p.Spec.VirtualHost == nil:
		return []index.DerivationID{derivation(formChild, p.Namespace+"/"+p.Name)}
	case p.Spec.VirtualHost.TLS == nil:
		return []index.DerivationID{derivation(formHost, fqdnOf(p))}
	default:
		return append(x.tlsSubjects(fqdnOf(p)), derivation(formHost, fqdnOf(p)))
	}
}

func (x *Rules) ingressSubjects(ing *networkingv1.Ingress) []index.DerivationID {
	var out []index.DerivationID
	for _, h := range x.ingressHosts(ing) {
		out = append(out, derivation(formHost, h))
		if len(ing.Spec.TLS) > 0 && h != anyHost {
			out = append(out, x.tlsSubjects(h)...)
		}
	}
	return out
}

// tlsSubjects are the derivations of a host that terminates TLS.
func (x *Rules) tlsSubjects(fqdn string) []index.DerivationID {
	out := []index.DerivationID{derivation(formTLS, fqdn)}
	if x.onDemand() && isWildcard(fqdn) {
		out = append(out, derivation(formCover, fqdn))
	}
	return out
}

// ingressHosts gives the hosts that an Ingress has a say in, each once.
func (x *Rules) ingressHosts(ing *networkingv1.Ingress) []string {
	if !x.opts.servesIngress(ing) {
		return nil
	}
	var out []string
	if ing.Spec.DefaultBackend != nil {
		out = append(out, anyHost)
	}
	for i := range ing.Spec.Rules {
		out = appendNew(out, ruleHost(&ing.Spec.Rules[i]))
	}
	for i := range ing.Spec.TLS {
		for _, h := range ing.Spec.TLS[i].Hosts {
			out = appendNew(out, strings.ToLower(h))
		}
	}
	return out
}

// ruleHost gives a rule's host; "*" for the default host.
func ruleHost(r *networkingv1.IngressRule) string {
	return strings.ToLower(orDefault(r.Host, anyHost))
}

func fqdnOf(p *contourv1.HTTPProxy) string { return strings.ToLower(p.Spec.VirtualHost.Fqdn) }

func includeTarget(p *contourv1.HTTPProxy, inc contourv1.Include) (ns, name string) {
	return orDefault(inc.Namespace, p.Namespace), inc.Name
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// appendNew appends s unless list has it. The lists are short.
func appendNew(list []string, s string) []string {
	for _, x := range list {
		if x == s {
			return list
		}
	}
	return append(list, s)
}

// proxyNamed gets an HTTPProxy that is served; one of another class is missing.
func (x *Rules) proxyNamed(r *index.Reader, ns, name string) (*index.Object, *contourv1.HTTPProxy, index.Presence) {
	o, presence := r.Get(kinds.HTTPProxy, ns, name)
	if presence != index.Found {
		return nil, nil, presence
	}
	p := o.Body.(*contourv1.HTTPProxy)
	if !x.opts.servesProxy(p) {
		return nil, nil, index.Missing
	}
	return o, p, index.Found
}
