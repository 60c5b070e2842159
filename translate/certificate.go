package translate

import (
	"fmt"
	"slices"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// secretRef names a Secret, and the namespace of the object that refers to it.
type secretRef struct {
	namespace, name string
	from            string
}

func (s secretRef) String() string { return s.namespace + "/" + s.name }

// standing is what is known of a certificate that an object refers to.
type standing uint8

const (
	undecided standing = iota // a kind that decides is not complete
	unusable
	stale // the Secret is broken; its last good version is in service
	usable
)

// refusal says why a certificate is unusable or stale.
type refusal struct {
	notDelegated bool
	why          string
}

// certificate decides whether an object may use a Secret for a host, and the Secret
// can serve. Whoever calls it must demand the Secret's derivation if it wants stale
// ones.
func (x *Rules) certificate(r *index.Reader, fqdn string, s secretRef) (standing, refusal) {
	if st := delegated(r, s); st != usable {
		return st, refusal{notDelegated: true, why: "certificate delegation not permitted"}
	}
	o, presence := r.Get(kinds.Secret, s.namespace, s.name)
	switch presence {
	case index.NotKnown:
		return undecided, refusal{}
	case index.Missing:
		return unusable, refusal{why: "Secret not found"}
	}
	n := o.Note.(*certificateNote)
	if n.flaw == "" {
		return usable, refusal{}
	}
	// Kept by this process, or by an Envoy that got it from one before.
	_, kept := r.Fact(factSecret + "/" + s.String())
	for _, name := range x.heldNames(fqdn, s) {
		kept = kept || r.Witnessed(resourceKey(typeSecret, name))
	}
	if kept {
		return stale, refusal{why: n.flaw}
	}
	return unusable, refusal{why: n.flaw}
}

// delegated reports whether the Secret's namespace lets the referring one use it.
func delegated(r *index.Reader, s secretRef) standing {
	if s.namespace == s.from {
		return usable
	}
	for _, o := range r.Range(kinds.TLSCertificateDelegation, lookupDelegation(s.namespace, s.name), index.NeedMonotone) {
		if delegates(o.Body.(*contourv1.TLSCertificateDelegation), s) {
			return usable
		}
	}
	if r.ReliesOnAbsence(kinds.TLSCertificateDelegation) {
		return unusable
	}
	return undecided
}

func delegates(d *contourv1.TLSCertificateDelegation, s secretRef) bool {
	for _, c := range d.Spec.Delegations {
		to := c.TargetNamespaces
		if c.SecretName == s.name && (slices.Contains(to, s.from) || (len(to) == 1 && to[0] == "*")) {
			return true
		}
	}
	return false
}

// proxySecret is the Secret that a root's TLS names.
func proxySecret(p *contourv1.HTTPProxy) secretRef {
	ns, name := qualified(p.Spec.VirtualHost.TLS.SecretName, p.Namespace)
	return secretRef{ns, name, p.Namespace}
}

// proxyTLSFault words a refusal for the HTTPProxy's status.
func proxyTLSFault(p *contourv1.HTTPProxy, why refusal) *fault {
	const field = "spec.virtualhost.tls.secretName"
	name := p.Spec.VirtualHost.TLS.SecretName
	if why.notDelegated {
		return faultf(field, tlsError, "DelegationNotPermitted", "Spec.VirtualHost.TLS Secret %q certificate delegation not permitted", name)
	}
	return faultf(field, tlsError, "SecretNotValid", "Spec.VirtualHost.TLS Secret %q is invalid: %s", name, why.why)
}

// staleFault words that a broken Secret's last good version is in service.
func staleFault(f *fault) *fault {
	kept := *f
	kept.message = fmt.Sprintf("%s; the last good certificate stays in service", f.message)
	return &kept
}
