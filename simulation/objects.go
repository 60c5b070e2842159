package simulation

import (
	"fmt"
	"strconv"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/holdfast-xds/holdfast/index"
)

// statusTime is when a kind's state changed, as the index is told.
type statusTime = time.Time

// timestamp of an object that was created at a version.
func timestamp(v version) metav1.Time {
	return metav1.NewTime(epoch.Add(time.Duration(v) * time.Second))
}

func meta(ns, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: ns, Name: name, UID: types.UID(ns + "/" + name)}
}

const servicePort = 80

// rejectedConnections is a circuit breaker that the model Envoys reject, and
// rejectedHeader a header value: what makes a NACK.
const (
	rejectedConnections = 666
	rejectedHeader      = "reject-me"
)

func newService(ns, name, portName string, annotations map[string]string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta(ns, name)}
	s.Annotations = annotations
	s.Spec.Ports = []corev1.ServicePort{{Name: portName, Port: servicePort, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}}
	return s
}

func newSlice(ns, service string, n int, portName string, addresses []string) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: meta(ns, service+"-"+strconv.Itoa(n)), AddressType: discoveryv1.AddressTypeIPv4}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	port, protocol := int32(8080), corev1.ProtocolTCP
	s.Ports = []discoveryv1.EndpointPort{{Name: &portName, Port: &port, Protocol: &protocol}}
	ready := true
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	return s
}

func newSecret(ns, name string, certificate int) *corev1.Secret {
	p := pairs()[certificate]
	return &corev1.Secret{
		ObjectMeta: meta(ns, name), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: p.cert, corev1.TLSPrivateKeyKey: p.key},
	}
}

func newDelegation(ns, name string, secrets []string, target string) *contourv1.TLSCertificateDelegation {
	d := &contourv1.TLSCertificateDelegation{ObjectMeta: meta(ns, name)}
	for _, s := range secrets {
		d.Spec.Delegations = append(d.Spec.Delegations, contourv1.CertificateDelegation{SecretName: s, TargetNamespaces: []string{target}})
	}
	return d
}

func newIngress(ns, name, host, path, service, secret string) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{ObjectMeta: meta(ns, name)}
	prefix := networkingv1.PathTypePrefix
	ing.Spec.Rules = []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &prefix, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: servicePort}},
		}}},
	}}}}
	if secret != "" {
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}, SecretName: secret}}
	}
	return ing
}

func newIngressClass(name string) *networkingv1.IngressClass {
	return &networkingv1.IngressClass{ObjectMeta: meta("", name), Spec: networkingv1.IngressClassSpec{Controller: "projectcontour.io/ingress-controller"}}
}

func newNamespace(name string, generation int) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: meta("", name)}
	n.Labels = map[string]string{"generation": strconv.Itoa(generation)}
	return n
}

// newProxy is the generator's hand on HTTPProxy: a root when it has a host.
func newProxy(ns, name, host, secret string) *contourv1.HTTPProxy {
	p := &contourv1.HTTPProxy{ObjectMeta: meta(ns, name)}
	if host != "" {
		p.Spec.VirtualHost = &contourv1.VirtualHost{Fqdn: host}
		if secret != "" {
			p.Spec.VirtualHost.TLS = &contourv1.TLS{SecretName: secret}
		}
	}
	return p
}

func route(prefix string, services ...string) contourv1.Route {
	r := contourv1.Route{Conditions: []contourv1.MatchCondition{{Prefix: prefix}}}
	for i, s := range services {
		r.Services = append(r.Services, contourv1.Service{Name: s, Port: servicePort, Weight: int64(i + 1)})
	}
	return r
}

func address(service, n int) string { return fmt.Sprintf("10.0.%d.%d", service, n+1) }

// typed gives an object's body, copied so that it may be changed and put back.
func typed[T interface{ DeepCopy() T }](o *index.Object) T { return o.Body.(T).DeepCopy() }
