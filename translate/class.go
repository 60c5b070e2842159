package translate

import (
	"slices"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// defaultClass is served, beside objects without a class, unless classes were
// configured.
const defaultClass = "contour"

// servesProxy reports whether the HTTPProxy is of a class that is served.
func (o *Options) servesProxy(p *contourv1.HTTPProxy) bool {
	return o.servesClass(p.Annotations, p.Spec.IngressClassName)
}

// servesIngress reports whether the Ingress is of a class that is served.
func (o *Options) servesIngress(ing *networkingv1.Ingress) bool {
	var field string
	if ing.Spec.IngressClassName != nil {
		field = *ing.Spec.IngressClassName
	}
	return o.servesClass(ing.Annotations, field)
}

// servesClass: an annotation wins over the field.
func (o *Options) servesClass(annotations map[string]string, field string) bool {
	class := field
	if a := classAnnotation(annotations); a != "" {
		class = a
	}
	if len(o.IngressClassNames) == 0 {
		return class == "" || class == defaultClass
	}
	return slices.Contains(o.IngressClassNames, class)
}

func classAnnotation(a map[string]string) string {
	if class, ok := a["projectcontour.io/ingress.class"]; ok {
		return class
	}
	return a["kubernetes.io/ingress.class"]
}
