package kube

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/e2e/proc"
)

const (
	adminToken    = "admin-token"
	holdfastToken = "holdfast-token"
	holdfastUser  = "holdfast"
)

func writeTokens(path string) error {
	return os.WriteFile(path, []byte(adminToken+`,admin,1,"system:masters"`+"\n"+holdfastToken+","+holdfastUser+",2\n"), 0o600)
}

func writeKey(path string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

// resources are the resources that holdfast reads, by API group.
var resources = map[string][]string{
	"":                  {"services", "secrets", "namespaces"},
	"discovery.k8s.io":  {"endpointslices"},
	"networking.k8s.io": {"ingresses", "ingressclasses"},
	"projectcontour.io": {"httpproxies", "tlscertificatedelegations"},
}

// AllowReading gives the user holdfast the right to read all that it reads,
// except some resources, by their plural names, and waits until it is so for new
// requests.
func (k *Cluster) AllowReading(ctx context.Context, except ...string) error {
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: holdfastUser},
	}
	for group, names := range resources {
		allowed := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return slices.Contains(except, n) })
		if len(allowed) > 0 {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: allowed, Verbs: []string{"list", "watch"}})
		}
	}
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: holdfastUser},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: holdfastUser}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: holdfastUser},
	}
	if err := errors.Join(k.Apply(ctx, role), k.Apply(ctx, binding)); err != nil {
		return err
	}
	return proc.Until(ctx, "rights in effect", startLimit, func(ctx context.Context) error { return k.rights(ctx, except) })
}

// rights gives an error unless the user holdfast may read just what it should:
// the API server learns of a changed role by a watch of its own.
func (k *Cluster) rights(ctx context.Context, except []string) error {
	for group, names := range resources {
		for _, n := range names {
			want := http.StatusOK
			if slices.Contains(except, n) {
				want = http.StatusForbidden
			}
			got, err := k.reader.status(ctx, collection(group, n)+"?limit=1")
			if err != nil {
				return err
			}
			if got != want {
				return fmt.Errorf("%s: status %d, want %d", n, got, want)
			}
		}
	}
	return nil
}

// collection is where a resource is listed; all that holdfast reads is v1.
func collection(group, plural string) string {
	if group == "" {
		return "/api/v1/" + plural
	}
	return "/apis/" + group + "/v1/" + plural
}
