package k8swatch

import (
	"bytes"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// A folder has no API server that fills in what its schemas give as defaults.

// setDefaults fills in the defaults of built-in kinds that translation reads.
func setDefaults(o metav1.Object) {
	switch o := o.(type) {
	case *corev1.Service:
		if o.Spec.Type == "" {
			o.Spec.Type = corev1.ServiceTypeClusterIP
		}
		for i := range o.Spec.Ports {
			if o.Spec.Ports[i].Protocol == "" {
				o.Spec.Ports[i].Protocol = corev1.ProtocolTCP
			}
		}
	case *discoveryv1.EndpointSlice:
		name, protocol := "", corev1.ProtocolTCP
		for i := range o.Ports {
			if o.Ports[i].Name == nil {
				o.Ports[i].Name = &name
			}
			if o.Ports[i].Protocol == nil {
				o.Ports[i].Protocol = &protocol
			}
		}
	case *corev1.Secret:
		if o.Type == "" {
			o.Type = corev1.SecretTypeOpaque
		}
	}
}

// proxyDefaults are the defaults of HTTPProxy's schema, by the name of the field
// that they are in. Each of these names occurs in one sense only. They are
// filled in before decoding, since afterwards "left out" and "0" look the same.
var proxyDefaults = map[string]map[string]any{
	"requestRedirectPolicy":   {"statusCode": 302},
	"internalRedirectPolicy":  {"allowCrossSchemeRedirect": "Never"},
	"retryPolicy":             {"count": 1},
	"slowStartPolicy":         {"aggression": "1.0", "minWeightPercent": 10},
	"withRequestBody":         {"maxRequestBytes": 1024},
	"requestHeaderValueMatch": {"expectMatch": true},
}

func withDefaultFields(j []byte, kind index.Kind) ([]byte, error) {
	if kind != kinds.HTTPProxy || !mentionsDefaults(j) {
		return j, nil
	}
	var o any
	d := json.NewDecoder(bytes.NewReader(j))
	d.UseNumber()
	if err := d.Decode(&o); err != nil {
		return nil, err
	}
	fillIn(o)
	return json.Marshal(o)
}

func mentionsDefaults(j []byte) bool {
	for name := range proxyDefaults {
		if bytes.Contains(j, []byte(`"`+name+`"`)) {
			return true
		}
	}
	return false
}

func fillIn(v any) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			fillIn(x)
		}
	case map[string]any:
		for name, x := range v {
			fillIn(x)
			if object, ok := x.(map[string]any); ok {
				fillInto(object, proxyDefaults[name])
			}
		}
	}
}

func fillInto(object, defaults map[string]any) {
	for k, d := range defaults {
		if _, given := object[k]; !given {
			object[k] = d
		}
	}
}
