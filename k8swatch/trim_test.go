package k8swatch

import (
	"reflect"
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/holdfast-xds/holdfast/kinds"
)

// fatMeta is all that metadata can hold.
func fatMeta() metav1.ObjectMeta {
	now := metav1.NewTime(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC))
	seconds := int64(1)
	return metav1.ObjectMeta{
		Name: "n", Namespace: "x", UID: "u", Generation: 7, ResourceVersion: "9", CreationTimestamp: now,
		GenerateName: "n-", DeletionTimestamp: &now, DeletionGracePeriodSeconds: &seconds,
		Labels: map[string]string{"app": "a", "kubernetes.io/service-name": "s"},
		Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": "{}",
			"projectcontour.io/num-retries":                    "1",
			"ingress.kubernetes.io/force-ssl-redirect":         "true",
			"kubernetes.io/ingress.class":                      "c",
			"ingressclass.kubernetes.io/is-default-class":      "true",
			"endpoints.kubernetes.io/last-change-trigger-time": "now",
		},
		OwnerReferences: []metav1.OwnerReference{{}}, Finalizers: []string{"f"}, ManagedFields: []metav1.ManagedFieldsEntry{{}},
	}
}

func TestTrimKeepsOnlyMetadataThatIsRead(t *testing.T) {
	for _, w := range kinds.All {
		o := w.New()
		m := fatMeta()
		reflect.ValueOf(o).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(m))
		o.(kinds.Object).SetGroupVersionKind(w.GVK)
		trim(o)
		want := metav1.ObjectMeta{Name: "n", Namespace: "x", UID: "u", Generation: 7, ResourceVersion: "9", CreationTimestamp: m.CreationTimestamp}
		want.Annotations = map[string]string{
			"projectcontour.io/num-retries":               "1",
			"ingress.kubernetes.io/force-ssl-redirect":    "true",
			"kubernetes.io/ingress.class":                 "c",
			"ingressclass.kubernetes.io/is-default-class": "true",
		}
		switch w.Kind {
		case kinds.Namespace:
			want.Labels = map[string]string{"app": "a", "kubernetes.io/service-name": "s"}
		case kinds.EndpointSlice:
			want.Labels = map[string]string{"kubernetes.io/service-name": "s"}
		}
		if got := reflect.ValueOf(o).Elem().FieldByName("ObjectMeta").Interface(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\nwant %+v", w.Kind, got, want)
		}
		if got := o.(kinds.Object).GroupVersionKind(); !got.Empty() {
			t.Errorf("%s: TypeMeta is %s", w.Kind, got)
		}
	}
}

func TestTrimBodies(t *testing.T) {
	for name, c := range map[string]struct {
		object metav1.Object
		in     string
		want   string
	}{
		"a proxy's status": {&contourv1.HTTPProxy{}, `
spec: {virtualhost: {fqdn: a.test}}
status: {currentStatus: valid}`, `spec: {virtualhost: {fqdn: a.test}}`},
		"an ingress's status": {&networkingv1.Ingress{}, `
spec: {ingressClassName: c}
status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}`, `spec: {ingressClassName: c}`},
		"a service": {&corev1.Service{}, `
spec: {type: ExternalName, externalName: e.test, clusterIP: None, selector: {app: a}, ports: [{port: 80}], clusterIPs: [None], sessionAffinity: None}
status: {conditions: [{type: t}], loadBalancer: {ingress: [{ip: 1.2.3.4}]}}`, `
spec: {type: ExternalName, externalName: e.test, clusterIP: None, ports: [{port: 80}]}
status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}`},
		"endpoints": {&discoveryv1.EndpointSlice{}, `
addressType: IPv4
ports: [{name: http, port: 80, appProtocol: h2c}]
endpoints:
- addresses: [1.2.3.4]
  conditions: {ready: true, serving: true, terminating: false}
  hostname: h
  nodeName: n
  zone: z
  hints: {forZones: [{name: z}]}
  targetRef: {kind: Pod, name: p}
- addresses: [1.2.3.5]
  conditions: {ready: false}`, `
addressType: IPv4
ports: [{name: http, port: 80, appProtocol: h2c}]
endpoints:
- addresses: [1.2.3.4]
  conditions: {ready: true, serving: true, terminating: false}
- addresses: [1.2.3.5]
  conditions: {ready: false}`},
		"a namespace": {&corev1.Namespace{}, `
spec: {finalizers: [kubernetes]}
status: {phase: Active}`, `{}`},
		// eyJrZXlzIjpbXX0= is {"keys":[]}, eyJhIjowfQ== is {"a":0}.
		"a secret of the common type": {&corev1.Secret{}, `
type: Opaque
data: {tls.crt: YQ==, tls.key: YQ==, ca.crt: YQ==, crl.pem: YQ==, any-name: eyJrZXlzIjpbXX0=, config: eyJhIjowfQ==, password: YQ==}`, `
type: Opaque
data: {tls.crt: YQ==, tls.key: YQ==, ca.crt: YQ==, crl.pem: YQ==, any-name: eyJrZXlzIjpbXX0=, config: null, password: null}`},
		"a service account's token": {&corev1.Secret{}, `
type: kubernetes.io/service-account-token
data: {ca.crt: YQ==, token: YQ==}`, `type: kubernetes.io/service-account-token`},
		"a registry's password": {&corev1.Secret{}, `
type: kubernetes.io/dockerconfigjson
data: {.dockerconfigjson: YQ==}`, `type: kubernetes.io/dockerconfigjson`},
	} {
		want := reflect.New(reflect.TypeOf(c.object).Elem()).Interface()
		must(t, yaml.UnmarshalStrict([]byte(c.in), c.object))
		must(t, yaml.UnmarshalStrict([]byte(c.want), want))
		trim(c.object)
		if !reflect.DeepEqual(c.object, want) {
			t.Errorf("%s: %+v\nwant %+v", name, c.object, want)
		}
	}
}
