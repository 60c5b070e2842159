package k8swatch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/holdfast-xds/holdfast/kinds"
)

var coreVersion = schema.GroupVersion{Version: "v1"}

// askTimeout bounds a single small question to the API server.
const askTimeout = 10 * time.Second

// serves asks discovery whether the API server serves a kind. No error and
// false is evidence that it does not: the server is ready, and lists its groups
// without this one, or this group's resources without this one.
func (k *Kube) serves(ctx context.Context, w *kinds.Watched) (bool, error) {
	if err := k.ready(ctx); err != nil {
		return false, err
	}
	var groups metav1.APIGroupList
	if err := k.ask(ctx, "/apis", &groups); err != nil {
		return false, err
	}
	gv := w.GVK.GroupVersion()
	if !listsVersion(groups.Groups, gv) {
		return false, nil
	}
	var resources metav1.APIResourceList
	if err := k.ask(ctx, "/apis/"+gv.String(), &resources); err != nil {
		return false, err
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == w.Resource }), nil
}

func listsVersion(groups []metav1.APIGroup, gv schema.GroupVersion) bool {
	return slices.ContainsFunc(groups, func(g metav1.APIGroup) bool {
		return g.Name == gv.Group && slices.ContainsFunc(g.Versions, func(v metav1.GroupVersionForDiscovery) bool { return v.Version == gv.Version })
	})
}

// ready: an API server that starts serves its own kinds before it has found the
// custom ones. One that does not say whether it is ready is taken at its word.
func (k *Kube) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var code int
	err := once(k.core.Get()).AbsPath("/readyz").Do(ctx).StatusCode(&code).Error()
	switch code {
	case http.StatusOK, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return nil
	}
	if err == nil {
		err = fmt.Errorf("status %d", code)
	}
	return fmt.Errorf("the API server is not ready: %w", err)
}

func (k *Kube) ask(ctx context.Context, path string, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	body, err := once(k.core.Get()).AbsPath(path).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("discovery %s: %w", path, err)
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("discovery %s: %w", path, err)
	}
	return nil
}
