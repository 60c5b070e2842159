package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/holdfast-xds/holdfast/kinds"
)

// The role lets holdfast read the kinds that it watches, and no others.
func TestRoleIsWhatIsWatched(t *testing.T) {
	raw, err := os.ReadFile("kubernetes/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); role.Kind != "ClusterRole"; {
		role = rbacv1.ClusterRole{}
		if err := d.Decode(&role); errors.Is(err, io.EOF) {
			t.Fatal("no ClusterRole")
		} else if err != nil {
			t.Fatal(err)
		}
	}
	var allowed, watched []string
	for _, r := range role.Rules {
		if !slices.Equal(r.Verbs, []string{"list", "watch"}) {
			t.Errorf("verbs %v of %v", r.Verbs, r.Resources)
		}
		for _, name := range r.Resources {
			allowed = append(allowed, r.APIGroups[0]+"/"+name)
		}
	}
	for i := range kinds.All {
		k := &kinds.All[i]
		watched = append(watched, k.GVK.Group+"/"+k.Resource)
	}
	slices.Sort(allowed)
	slices.Sort(watched)
	if !slices.Equal(allowed, watched) {
		t.Errorf("allowed %v\nwatched %v", allowed, watched)
	}
}
