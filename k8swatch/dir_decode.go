package k8swatch

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// fieldError is an error of one field of an object.
type fieldError struct{ field, message string }

func (e *fieldError) Error() string { return e.field + ": " + e.message }

// explain splits an error into the field at fault, if it is known, and words.
func explain(err error) (field, message string) {
	if f := (*fieldError)(nil); errors.As(err, &f) {
		return f.field, f.Error()
	}
	if t := (*stdjson.UnmarshalTypeError)(nil); errors.As(err, &t) && t.Field != "" {
		return t.Field, fmt.Sprintf("%s: can't be a %s, must be %s", t.Field, t.Value, t.Type)
	}
	return "", err.Error()
}

// readKey reads name and namespace alone, so that an object with an error
// elsewhere can be named.
func readKey(j []byte, w *kinds.Watched) (index.ObjectKey, error) {
	var o struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := stdjson.Unmarshal(j, &o); err != nil {
		return index.ObjectKey{}, err
	}
	k := index.ObjectKey{Kind: w.Kind, Name: o.Metadata.Name}
	if k.Name == "" {
		return k, &fieldError{"metadata.name", "is missing"}
	}
	if bad := validation.IsDNS1123Subdomain(k.Name); len(bad) > 0 {
		return k, &fieldError{"metadata.name", fmt.Sprintf("%q is not a name: %s", k.Name, bad[0])}
	}
	if !w.Namespaced {
		return k, nil
	}
	k.Namespace = o.Metadata.Namespace
	if k.Namespace == "" {
		k.Namespace = metav1.NamespaceDefault
	}
	if bad := validation.IsDNS1123Label(k.Namespace); len(bad) > 0 {
		return k, &fieldError{"metadata.namespace", fmt.Sprintf("%q is not a namespace: %s", k.Namespace, bad[0])}
	}
	return k, nil
}

// decode makes the typed, trimmed object. Unknown and repeated fields are
// warnings; a value of the wrong type is an error.
func decode(j []byte, w *kinds.Watched) (metav1.Object, []fieldError, error) {
	j, err := withDefaultFields(j, w.Kind)
	if err != nil {
		return nil, nil, err
	}
	o := w.New()
	strict, err := json.UnmarshalStrict(j, o)
	if err != nil {
		return nil, nil, err
	}
	if !w.Namespaced {
		o.SetNamespace("")
	} else if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	o.SetResourceVersion("")
	if s, ok := o.(*corev1.Secret); ok {
		mergeStringData(s)
	}
	setDefaults(o)
	trim(o)
	return o, warningsOf(strict), nil
}

func warningsOf(strict []error) []fieldError {
	var out []fieldError
	for _, err := range strict {
		field := ""
		if f := json.FieldError(nil); errors.As(err, &f) {
			field = f.FieldPath()
		}
		// What the API server adds, and kubectl prints, is no news.
		if !strings.HasPrefix(field, "metadata.") && !strings.HasPrefix(field, "status") {
			out = append(out, fieldError{field, err.Error()})
		}
	}
	return out
}

// mergeStringData does what the API server does on a write.
func mergeStringData(s *corev1.Secret) {
	if len(s.StringData) == 0 {
		return
	}
	data := maps.Clone(s.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	for k, v := range s.StringData {
		data[k] = []byte(v)
	}
	s.Data, s.StringData = data, nil
}
