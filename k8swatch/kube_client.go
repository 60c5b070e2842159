package k8swatch

import (
	"context"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/holdfast-xds/holdfast/kinds"
)

// LoadConfig reads a kubeconfig file; with an empty path it is the
// configuration of the pod that we run in.
func LoadConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		c, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no kubeconfig is given, and not in a cluster: %w", err)
		}
		return c, nil
	}
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	return c, nil
}

const (
	typeJSON     = runtime.ContentTypeJSON
	typeProtobuf = runtime.ContentTypeProtobuf
)

// clients makes REST clients that share one HTTP client, and so one connection.
type clients struct {
	config rest.Config
	http   *http.Client
	codecs serializer.CodecFactory
}

func newClients(config *rest.Config) (*clients, error) {
	c := rest.CopyConfig(config)
	// A few watches and lists: what client-side limits would slow down is only
	// how fast we see a cluster after a restart.
	c.QPS, c.RateLimiter = -1, nil
	if c.UserAgent == "" {
		c.UserAgent = "holdfast"
	}
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", c.Host, err)
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return &clients{config: *c, http: h, codecs: serializer.NewCodecFactory(scheme)}, nil
}

// of makes the client for a group. Core groups speak protobuf, which takes a
// fraction of JSON's time and memory to decode; custom resources have only JSON.
func (c *clients) of(gv schema.GroupVersion, contentType string) (*rest.RESTClient, error) {
	config := c.config
	config.GroupVersion, config.APIPath = &gv, "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = c.codecs.WithoutConversion()
	config.ContentType, config.AcceptContentTypes = contentType, contentType
	if contentType == typeProtobuf {
		config.AcceptContentTypes = typeProtobuf + "," + typeJSON
	}
	client, err := rest.RESTClientForConfigAndClient(&config, c.http)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", gv, err)
	}
	return client, nil
}

// contentTypeOf: every built-in kind is Required, custom resources are not.
func contentTypeOf(w *kinds.Watched) string {
	if w.Required {
		return typeProtobuf
	}
	return typeJSON
}

// resource lists and watches one kind.
type resource struct {
	client rest.Interface
	*kinds.Watched
}

func (r *resource) get(o metav1.ListOptions) *rest.Request {
	o.FieldSelector = fieldSelector(r.Watched)
	return once(r.client.Get()).Resource(r.Resource).VersionedParams(&o, metav1.ParameterCodec)
}

// once: client-go would try a broken connection again for ten seconds before
// anyone hears of it. When to try again is ours to say.
func once(r *rest.Request) *rest.Request { return r.MaxRetries(0) }

func (r *resource) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	return r.get(o).Do(ctx).Get()
}

// fieldSelector keeps Helm's releases from being fetched at all: they are often
// most of a cluster's Secrets.
func fieldSelector(w *kinds.Watched) string {
	if w.Kind == kinds.Secret {
		return "type!=" + helmRelease
	}
	return ""
}
