// Package kinds lists the Kubernetes kinds that holdfast watches: how each is
// called, where the API server serves it, which Go type its objects have in the
// index, and what of an object is not kept. k8swatch fills the index by this
// table and translate reads it by it.
package kinds

import (
	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/holdfast-xds/holdfast/index"
)

// The kinds, by the names that Kubernetes gives them.
const (
	HTTPProxy                index.Kind = "HTTPProxy"
	TLSCertificateDelegation index.Kind = "TLSCertificateDelegation"
	Ingress                  index.Kind = "Ingress"
	IngressClass             index.Kind = "IngressClass"
	Service                  index.Kind = "Service"
	EndpointSlice            index.Kind = "EndpointSlice"
	Secret                   index.Kind = "Secret"
	Namespace                index.Kind = "Namespace"
)

// Object is a typed Kubernetes object; a pointer to one is an index.Object's Body.
type Object interface {
	metav1.Object
	schema.ObjectKind
}

// Watched describes one kind.
type Watched struct {
	index.KindSpec
	GVK        schema.GroupVersionKind
	Resource   string // plural
	Namespaced bool
	// New makes an empty object of the kind's Go type, for decoding into.
	New func() metav1.Object
}

// GVR is where the API server serves the kind.
func (w *Watched) GVR() schema.GroupVersionResource {
	return w.GVK.GroupVersion().WithResource(w.Resource)
}

// All lists every kind. The codes are part of version tokens: never changed,
// never used again. Kinds of the core groups are Required: no discovery result
// is believed that says a Kubernetes API server does not serve them.
var All = []Watched{
	watched(HTTPProxy, "P", false, contourv1.GroupVersion, "httpproxies", true, func() metav1.Object { return new(contourv1.HTTPProxy) }),
	watched(TLSCertificateDelegation, "D", false, contourv1.GroupVersion, "tlscertificatedelegations", true, func() metav1.Object { return new(contourv1.TLSCertificateDelegation) }),
	watched(Ingress, "I", true, networkingv1.SchemeGroupVersion, "ingresses", true, func() metav1.Object { return new(networkingv1.Ingress) }),
	watched(IngressClass, "C", true, networkingv1.SchemeGroupVersion, "ingressclasses", false, func() metav1.Object { return new(networkingv1.IngressClass) }),
	watched(Service, "S", true, corev1.SchemeGroupVersion, "services", true, func() metav1.Object { return new(corev1.Service) }),
	watched(EndpointSlice, "E", true, discoveryv1.SchemeGroupVersion, "endpointslices", true, func() metav1.Object { return new(discoveryv1.EndpointSlice) }),
	watched(Secret, "T", true, corev1.SchemeGroupVersion, "secrets", true, func() metav1.Object { return new(corev1.Secret) }),
	watched(Namespace, "N", true, corev1.SchemeGroupVersion, "namespaces", false, func() metav1.Object { return new(corev1.Namespace) }),
}

func watched(k index.Kind, code string, required bool, gv schema.GroupVersion, resource string, namespaced bool, newObject func() metav1.Object) Watched {
	return Watched{
		KindSpec: index.KindSpec{Kind: k, Code: code, Required: required},
		GVK:      gv.WithKind(string(k)), Resource: resource, Namespaced: namespaced, New: newObject,
	}
}

// Find gives the entry of a kind, or nil.
func Find(k index.Kind) *Watched {
	for i := range All {
		if All[i].Kind == k {
			return &All[i]
		}
	}
	return nil
}
