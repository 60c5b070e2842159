package translate

import (
	"errors"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/holdfast-xds/holdfast/index"
)

// chainFact is one filter chain of the TLS listener.
type chainFact struct {
	chain  []byte
	fqdn   string
	secret string
}

// terms are how a host terminates TLS.
type terms struct {
	secret secretRef
	tlsVersions
	problems []index.Problem
}

// tls derives the filter chain of a host. A chain is only made when its
// certificate is there: one missing secret would hold back Envoy's whole listener.
func (x *Rules) tls(fqdn string, r *index.Reader) {
	t, ok := x.terms(fqdn, r)
	if !ok {
		return
	}
	for _, p := range t.problems {
		r.Problem(p)
	}
	if x.onDemand() {
		x.onDemandTLS(fqdn, t, r)
		return
	}
	x.setChain(fqdn, t, t.secret.String(), r)
}

// setChain leaves the host's filter chain, with the name of its Secret, for the
// listener.
func (x *Rules) setChain(fqdn string, t terms, secret string, r *index.Reader) {
	b := marshal(x.https.chain(fqdn, t, secret))
	r.SetFact(index.Fact{
		Key: factChain + "/" + fqdn, Value: &chainFact{b, fqdn, secret}, Digest: index.DigestOf(b),
	})
}

// terms finds out how the host terminates TLS: as its HTTPProxy says, or else as
// the oldest Ingress says whose certificate is fit.
func (x *Rules) terms(fqdn string, r *index.Reader) (terms, bool) {
	if root, ok := x.owner(r, fqdn); ok {
		t := root.proxy.Spec.VirtualHost.TLS
		switch {
		case t == nil && len(unprotected(root.proxy)) > 0, t != nil && t.Passthrough:
			return terms{}, false
		case t != nil:
			st := x.wanted(r, fqdn, proxySecret(root.proxy))
			if st != unusable {
				v, problems := x.opts.versions(proxyVersions(t), root.object.ObjectKey, "spec.virtualhost.tls.maximumProtocolVersion")
				return terms{proxySecret(root.proxy), v, problems}, st != undecided
			}
		}
	}
	return x.ingressTerms(fqdn, r)
}

// wanted demands a Secret's derivation, and tells how the Secret stands.
func (x *Rules) wanted(r *index.Reader, fqdn string, s secretRef) standing {
	st, why := x.certificate(r, fqdn, s)
	if !why.notDelegated {
		r.Demand(derivation(formSecret, s.String()), nil, hostKinds...)
	}
	return st
}

func (x *Rules) ingressTerms(fqdn string, r *index.Reader) (terms, bool) {
	list := ingressesOf(r, fqdn)
	for i := len(list) - 1; i >= 0; i-- {
		ing := list[i].Body.(*networkingv1.Ingress)
		for j := range ing.Spec.TLS {
			if fqdn == anyHost || !namesHost(ing.Spec.TLS[j].Hosts, fqdn) {
				continue
			}
			if t, ok := x.ingressEntry(r, fqdn, list[i], ing, j); ok {
				return t, true
			}
		}
	}
	return terms{}, false
}

// ingressEntry reads spec.tls[j]. Its problems are told here, since the routes of
// an Ingress don't depend on its certificate.
func (x *Rules) ingressEntry(r *index.Reader, fqdn string, o *index.Object, ing *networkingv1.Ingress, j int) (terms, bool) {
	field := item("spec.tls", j) + ".secretName"
	asked := readVersions(ing.Annotations[annotationTLSMinimum], ing.Annotations[annotationTLSMaximum])
	if asked.low > asked.high {
		f := annotationFault(annotationTLSMinimum, errors.New("the minimum protocol version is greater than the maximum protocol version"))
		r.Problem(f.on(o.ObjectKey, index.Error))
		return terms{}, false
	}
	ns, name := qualified(ing.Spec.TLS[j].SecretName, orDefault(ing.Annotations[annotationTLSCertificate], ing.Namespace))
	s := secretRef{ns, name, ing.Namespace}
	st, why := x.certificate(r, fqdn, s)
	if !why.notDelegated {
		r.Demand(derivation(formSecret, s.String()), nil, hostKinds...)
	}
	switch st {
	case undecided:
		return terms{}, false
	case unusable:
		r.Problem(ingressTLSFault(field, s, why).on(o.ObjectKey, index.Error))
		return terms{}, false
	case stale:
		r.Problem(staleFault(ingressTLSFault(field, s, why)).on(o.ObjectKey, index.Warning))
	}
	v, problems := x.opts.versions(asked, o.ObjectKey, annotationField(annotationTLSMaximum))
	return terms{s, v, problems}, true
}

func ingressTLSFault(field string, s secretRef, why refusal) *fault {
	if why.notDelegated {
		return faultf(field, tlsError, "DelegationNotPermitted", "Secret %q certificate delegation not permitted", s)
	}
	return faultf(field, tlsError, "SecretNotValid", "Secret %q is invalid: %s", s, why.why)
}

// chain makes the filter chain for one server name.
func (p *listenerParts) chain(fqdn string, t terms, secret string) *listenerv3.FilterChain {
	filters := p.filters
	if strings.HasPrefix(fqdn, anyHost) {
		filters = p.wildcardFilters
	}
	return &listenerv3.FilterChain{
		Name:             fqdn,
		FilterChainMatch: &listenerv3.FilterChainMatch{ServerNames: []string{fqdn}},
		TransportSocket:  tlsSocket(packed(downstreamTLS(t, secret))),
		Filters:          []*listenerv3.Filter{connectionManager(byRDS(planeHTTPS+fqdn), listenerHTTPS, filters)},
	}
}

var alpn = []string{"h2", "http/1.1"}

func downstreamTLS(t terms, secret string) *tlsv3.DownstreamTlsContext {
	return &tlsv3.DownstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{
		TlsParams:                      t.params(),
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: secret, SdsConfig: secretSource}},
		AlpnProtocols:                  alpn,
	}}
}
