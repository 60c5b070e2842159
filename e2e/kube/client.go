package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// Client writes objects.
type Client struct {
	dynamic dynamic.Interface
	http    *http.Client
	host    string
}

func newClient(c *rest.Config) (*Client, error) {
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	d, err := dynamic.NewForConfigAndClient(c, h)
	return &Client{dynamic: d, http: h, host: c.Host}, err
}

// plurals of the kinds that the tests write. No discovery: it would cost more
// requests than it saves lines.
var plurals = map[string]string{
	"Namespace": "namespaces", "Service": "services", "Secret": "secrets", "EndpointSlice": "endpointslices",
	"Ingress": "ingresses", "IngressClass": "ingressclasses",
	"HTTPProxy": "httpproxies", "TLSCertificateDelegation": "tlscertificatedelegations",
	"ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings",
	"CustomResourceDefinition": "customresourcedefinitions",
}

func (c *Client) resource(gvk schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	r := c.dynamic.Resource(gvk.GroupVersion().WithResource(plurals[gvk.Kind]))
	if namespace == "" {
		return r
	}
	return r.Namespace(namespace)
}

// Apply creates an object, or replaces the one that is there.
func (c *Client) Apply(ctx context.Context, o fixture.Object) error {
	m, err := fixture.Manifest(o)
	if err != nil {
		return err
	}
	return c.apply(ctx, &unstructured.Unstructured{Object: m})
}

func (c *Client) apply(ctx context.Context, u *unstructured.Unstructured) error {
	u.SetCreationTimestamp(metav1.Time{}) // these are the API server's to give
	u.SetUID("")
	r := c.resource(u.GroupVersionKind(), u.GetNamespace())
	_, err := r.Create(ctx, u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = c.replace(ctx, r, u)
	}
	if err != nil {
		return fmt.Errorf("apply %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return nil
}

// replace overwrites whatever is there. A Service keeps its address, which
// can't be changed.
func (c *Client) replace(ctx context.Context, r dynamic.ResourceInterface, u *unstructured.Unstructured) error {
	old, err := r.Get(ctx, u.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	u.SetResourceVersion(old.GetResourceVersion())
	for _, field := range []string{"clusterIP", "clusterIPs"} {
		v, found, err := unstructured.NestedFieldCopy(old.Object, "spec", field)
		if err == nil && found && u.GetKind() == "Service" {
			if err := unstructured.SetNestedField(u.Object, v, "spec", field); err != nil {
				return err
			}
		}
	}
	_, err = r.Update(ctx, u, metav1.UpdateOptions{})
	return err
}

// Version gives the resourceVersion that an object has now.
func (c *Client) Version(ctx context.Context, o fixture.Object) (uint64, error) {
	gvk := o.GetObjectKind().GroupVersionKind()
	u, err := c.resource(gvk, o.GetNamespace()).Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("get %s %s/%s: %w", gvk.Kind, o.GetNamespace(), o.GetName(), err)
	}
	return strconv.ParseUint(u.GetResourceVersion(), 10, 64)
}

// Delete deletes an object; one that isn't there is no error.
func (c *Client) Delete(ctx context.Context, o fixture.Object) error {
	gvk := o.GetObjectKind().GroupVersionKind()
	err := c.resource(gvk, o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s/%s: %w", gvk.Kind, o.GetNamespace(), o.GetName(), err)
	}
	return nil
}

// loaders write at the same time. More make a small machine no faster.
const loaders = 16

// Load applies many objects, in any order, several at a time. It stops at the
// first error.
func (c *Client) Load(ctx context.Context, objects []fixture.Object) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan fixture.Object)
	var workers sync.WaitGroup
	for range loaders {
		workers.Go(func() {
			for o := range next {
				if err := c.Apply(ctx, o); err != nil {
					cancel(err) // the first one wins
				}
			}
		})
	}
	for _, o := range objects {
		select {
		case next <- o:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// Namespaces creates namespaces.
func (c *Client) Namespaces(ctx context.Context, names ...string) error {
	for _, n := range names {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": n}}}
		if err := c.apply(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) installCRDs(ctx context.Context, stream []byte) error {
	var served []string
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(stream), 4096)
	for {
		u := &unstructured.Unstructured{}
		if err := d.Decode(&u.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("CRDs: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if err := c.apply(ctx, u); err != nil {
			return err
		}
		served = append(served, pathOf(u))
	}
	return proc.Until(ctx, "CRDs served", startLimit, func(ctx context.Context) error {
		var errs []error
		for _, p := range served {
			errs = append(errs, c.get(ctx, p))
		}
		return errors.Join(errs...)
	})
}

// pathOf gives where a CRD's objects are listed.
func pathOf(crd *unstructured.Unstructured) string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	version := ""
	if len(versions) > 0 {
		version, _, _ = unstructured.NestedString(versions[0].(map[string]any), "name")
	}
	return "/apis/" + group + "/" + version + "/" + plural + "?limit=1"
}
