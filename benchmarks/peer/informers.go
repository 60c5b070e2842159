package peer

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/holdfast-xds/holdfast/kinds"
)

// runInformers starts one shared informer for each kind, answers when all have
// listed, and stays until stdin ends.
func runInformers(kubeconfig string, in io.Reader, out *gob.Encoder) error {
	began := time.Now()
	if err := contourv1.AddToScheme(scheme.Scheme); err != nil {
		return err
	}
	base, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	var synced []cache.InformerSynced
	for i := range kinds.All {
		x, err := informer(base, &kinds.All[i])
		if err != nil {
			return err
		}
		synced = append(synced, x.HasSynced)
		go x.Run(stop)
	}
	for _, done := range synced {
		for !done() {
			time.Sleep(time.Millisecond)
		}
	}
	if err := out.Encode(Reply{Took: time.Since(began)}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

func informer(base *rest.Config, w *kinds.Watched) (cache.SharedIndexInformer, error) {
	gv := w.GVK.GroupVersion()
	c := rest.CopyConfig(base)
	c.QPS, c.APIPath = -1, "/apis"
	c.GroupVersion = &gv
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	if gv.Group == "" {
		c.APIPath = "/api"
	}
	if w.Required { // a built-in kind
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	}
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", w.Kind, err)
	}
	object, ok := w.New().(runtime.Object)
	if !ok {
		return nil, errors.New(string(w.Kind) + " is not a runtime.Object")
	}
	lw := cache.NewListWatchFromClient(client, w.Resource, "", fields.Everything())
	return cache.NewSharedIndexInformer(lw, object, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}), nil
}
