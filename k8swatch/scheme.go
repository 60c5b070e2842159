package k8swatch

import (
	"fmt"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/holdfast-xds/holdfast/index"
)

// noGVK: objects in the index have no TypeMeta; their kind is in their key.
var noGVK schema.GroupVersionKind

// newScheme knows the Go types of all kinds that can be watched.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, networkingv1.AddToScheme, discoveryv1.AddToScheme, contourv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("types of the Kubernetes API: %w", err)
		}
	}
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return s, nil
}

// objectOf makes the index's object of a trimmed one.
func objectOf(kind index.Kind, o metav1.Object) (*index.Object, error) {
	key := keyOf(kind, o)
	v, err := versionOf(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return &index.Object{ObjectKey: key, Version: v, Body: o}, nil
}

func keyOf(kind index.Kind, o metav1.Object) index.ObjectKey {
	return index.ObjectKey{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func versionOf(o interface{ GetResourceVersion() string }) (index.ResourceVersion, error) {
	v, err := index.ParseResourceVersion(o.GetResourceVersion())
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number", o.GetResourceVersion())
	}
	return v, nil
}
