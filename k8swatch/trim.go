package k8swatch

import (
	"bytes"
	"maps"
	"strings"
	"unique"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/kinds"
)

// trim removes from a freshly decoded object what translation never reads. At
// 100,000 objects that is most of their memory.
func trim(o metav1.Object) {
	trimMeta(o)
	switch o := o.(type) {
	case *contourv1.HTTPProxy:
		o.Status = contourv1.HTTPProxyStatus{}
	case *networkingv1.Ingress:
		o.Status = networkingv1.IngressStatus{}
	case *corev1.Service:
		trimService(o)
	case *discoveryv1.EndpointSlice:
		trimEndpointSlice(o)
	case *corev1.Secret:
		trimSecret(o)
	case *corev1.Namespace:
		o.Spec, o.Status = corev1.NamespaceSpec{}, corev1.NamespaceStatus{}
	}
}

// trimMeta keeps name, namespace, uid, generation, resourceVersion and
// creationTimestamp, and the labels and annotations that mean something to us.
func trimMeta(o metav1.Object) {
	o.SetManagedFields(nil)
	o.SetOwnerReferences(nil)
	o.SetFinalizers(nil)
	o.SetGenerateName("")
	o.SetSelfLink("")
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	// A namespace's name occurs in each of its objects: one copy of it will do.
	if ns := o.GetNamespace(); ns != "" {
		o.SetNamespace(unique.Make(ns).Value())
	}
	o.SetAnnotations(kept(o.GetAnnotations(), keepsAnnotation))
	o.SetLabels(kept(o.GetLabels(), keepsLabel(o)))
	if typed, ok := o.(kinds.Object); ok {
		typed.SetGroupVersionKind(noGVK)
	}
}

// Annotations by which users configure an ingress controller.
var annotationPrefixes = []string{
	"projectcontour.io/",
	"contour.heptio.com/",
	"ingress.kubernetes.io/",
	"kubernetes.io/ingress.",
	"ingressclass.kubernetes.io/",
}

func keepsAnnotation(key string) bool {
	for _, p := range annotationPrefixes {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

func keepsLabel(o metav1.Object) func(string) bool {
	switch o.(type) {
	case *corev1.Namespace:
		return func(string) bool { return true }
	case *discoveryv1.EndpointSlice:
		return func(key string) bool { return key == discoveryv1.LabelServiceName }
	}
	return func(string) bool { return false }
}

func kept(m map[string]string, keep func(string) bool) map[string]string {
	maps.DeleteFunc(m, func(k, _ string) bool { return !keep(k) })
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m) // a map never shrinks
}

func trimService(s *corev1.Service) {
	s.Spec = corev1.ServiceSpec{
		Type:         s.Spec.Type,
		Ports:        s.Spec.Ports,
		ClusterIP:    s.Spec.ClusterIP,
		ExternalName: s.Spec.ExternalName,
	}
	// The status of a Service is where its load balancer is: what the status of
	// an Ingress or HTTPProxy may have to say.
	s.Status.Conditions = nil
}

func trimEndpointSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		*e = discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: discoveryv1.EndpointConditions{
			Ready:       shared(e.Conditions.Ready),
			Serving:     shared(e.Conditions.Serving),
			Terminating: shared(e.Conditions.Terminating),
		}}
	}
}

// shared gives one of two booleans for all endpoints of all slices.
func shared(b *bool) *bool {
	if b == nil {
		return nil
	}
	if *b {
		return &yes
	}
	return &no
}

// yes and no never change; they are variables only to have addresses.
var yes, no = true, false

// trimSecret drops values that can't be a certificate, a key, a CA, a CRL or a
// key set. Their names stay, so that "this key holds nothing of use" is told
// from "there is no such key".
func trimSecret(s *corev1.Secret) {
	s.StringData = nil
	if !mayHoldTLS(s.Type) {
		s.Data = nil
		return
	}
	for k, v := range s.Data {
		if !keepsValue(k, v) {
			s.Data[k] = nil
		}
	}
}

// helmRelease is the type of the Secrets in which Helm keeps a release.
const helmRelease = "helm.sh/release.v1"

func mayHoldTLS(t corev1.SecretType) bool {
	switch t {
	case corev1.SecretTypeServiceAccountToken, corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson,
		corev1.SecretTypeBasicAuth, corev1.SecretTypeSSHAuth, corev1.SecretTypeBootstrapToken, helmRelease:
		return false
	}
	return true
}

func keepsValue(key string, value []byte) bool {
	switch key {
	case corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt", "crl.pem":
		return true
	}
	return looksLikeKeySet(value)
}

// looksLikeKeySet: a JSON object that mentions "keys". A key set may be stored
// under any name.
func looksLikeKeySet(value []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) && bytes.Contains(value, []byte(`"keys"`))
}
