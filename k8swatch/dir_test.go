package k8swatch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// dirWorld is a folder with a source that reads it.
type dirWorld struct {
	*world
	path string
}

func newDirWorld(t *testing.T) *dirWorld {
	t.Helper()
	return &dirWorld{world: newWorld(t), path: t.TempDir()}
}

func (w *dirWorld) start() (stop func()) {
	w.t.Helper()
	return w.startWith(w.options())
}

func (w *dirWorld) startWith(o Options) (stop func()) {
	w.t.Helper()
	d, err := NewDir(w.path, w.world, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.run(d)
}

// replace writes a file as one should: under another name, then renamed.
func (w *dirWorld) replace(name, text string) {
	w.t.Helper()
	tmp := filepath.Join(w.path, filepath.Dir(name), "."+filepath.Base(name)+".tmp")
	must(w.t, os.MkdirAll(filepath.Dir(tmp), 0o755))
	must(w.t, os.WriteFile(tmp, []byte(text), 0o600))
	must(w.t, os.Rename(tmp, filepath.Join(w.path, name)))
}

// old is replace for a file that was there long before the source began.
func (w *dirWorld) old(name, text string) {
	w.t.Helper()
	w.replace(name, text)
	then := time.Now().Add(-time.Hour)
	must(w.t, os.Chtimes(filepath.Join(w.path, name), then, then))
}

// overwrite writes into a file in place.
func (w *dirWorld) overwrite(name, text string) {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(w.path, name), []byte(text), 0o600))
}

func (w *dirWorld) remove(name string) {
	w.t.Helper()
	must(w.t, os.RemoveAll(filepath.Join(w.path, name)))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func service(ns, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {namespace: %s, name: %s}\nspec: {ports: [{port: 80}]}\n", ns, name)
}

func proxy(ns, name, fqdn string) string {
	return fmt.Sprintf("apiVersion: projectcontour.io/v1\nkind: HTTPProxy\nmetadata: {namespace: %s, name: %s}\nspec: {virtualhost: {fqdn: %s}}\n", ns, name, fqdn)
}

func TestDirReadsTheFolderAndFollowsIt(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+service("x", "two"))
	w.old("deep/er/b.yml", proxy("z", "p", "p.test"))
	w.old("c.json", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x","labels":{"a":"b"}}}`)
	w.old(".hidden.yaml", service("x", "hidden"))
	w.old(".git/d.yaml", service("x", "hidden"))
	w.old("readme.md", "kind: Service")
	w.start()
	w.untilShown(`
HTTPProxy observed 0: z/p
Service observed 0: x/one x/two
Namespace observed 0: /x`)

	w.replace("a.yaml", service("x", "two")+"---\n"+service("x", "three"))
	w.untilShown(`
HTTPProxy observed 0: z/p
Service observed 0: x/three x/two
Namespace observed 0: /x`)

	w.replace("new/folder/e.yaml", service("x", "four"))
	w.remove("deep")
	w.untilShown(`
Service observed 0: x/four x/three x/two
Namespace observed 0: /x`)
	if got := w.ix.Snapshot().Source(); got != folderID {
		t.Errorf("source is %q", got)
	}
}

func TestDirOneTransactionPerChange(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+service("x", "two"))
	w.start()
	w.until("observed", allObserved)
	n := w.transactions()
	// "one" is as it was; its text has moved and has a comment.
	w.replace("a.yaml", proxy("x", "p", "p.test")+"---\n# moved\n"+service("x", "one"))
	w.until("changed", func(s *index.Snapshot) bool { return has(s, kinds.HTTPProxy, "x", "p") })
	got := w.since(n)
	if len(got) != 1 {
		t.Fatalf("%d transactions: %v", len(got), got)
	}
	var names []string
	for _, c := range got[0] {
		names = append(names, fmt.Sprintf("%T", c))
	}
	if want := "index.Upsert index.Delete"; strings.Join(names, " ") != want {
		t.Errorf("changes %v, want %s", names, want)
	}
	if u, ok := got[0][0].(index.Upsert); !ok || !u.InOrder {
		t.Errorf("%+v is not in order", got[0][0])
	}
}

func TestDirDuplicates(t *testing.T) {
	w := newDirWorld(t)
	w.old("b.yaml", strings.Replace(service("x", "one"), "80", "82", 1))
	w.start()
	w.until("observed", allObserved)
	w.replace("c.yaml", strings.Replace(service("x", "one"), "80", "83", 1))
	w.untilShown(`
Service observed 0: x/one
error Service x/one: is in b.yaml and again in c.yaml; the one in b.yaml counts`)
	if got := port(w.ix.Snapshot(), "x", "one"); got != 82 {
		t.Errorf("port %d", got)
	}
	w.replace("a.yaml", strings.Replace(service("x", "one"), "80", "81", 1))
	s := w.until("the first by name counts", func(s *index.Snapshot) bool { return port(s, "x", "one") == 81 })
	if p := s.Problems(); len(p) != 1 || !strings.Contains(p[0].Message, "a.yaml and again in b.yaml, c.yaml") {
		t.Errorf("problems %v", p)
	}
	w.remove("a.yaml")
	w.remove("b.yaml")
	s = w.until("the last one counts", func(s *index.Snapshot) bool { return port(s, "x", "one") == 83 })
	if p := s.Problems(); len(p) != 0 {
		t.Errorf("problems %v", p)
	}
}

func TestDirLinksLikeAMountedConfigMap(t *testing.T) {
	w := newDirWorld(t)
	link := func(name, text string) {
		must(t, os.Mkdir(filepath.Join(w.path, name), 0o755))
		must(t, os.WriteFile(filepath.Join(w.path, name, "a.yaml"), []byte(text), 0o600))
		must(t, os.Symlink(name, filepath.Join(w.path, "..data_tmp")))
		must(t, os.Rename(filepath.Join(w.path, "..data_tmp"), filepath.Join(w.path, "..data")))
	}
	link("..one", service("x", "one"))
	must(t, os.Symlink("..data/a.yaml", filepath.Join(w.path, "a.yaml")))
	w.start()
	w.untilShown(`Service observed 0: x/one`)
	link("..two", service("x", "two-has-a-longer-name"))
	w.untilShown(`Service observed 0: x/two-has-a-longer-name`)
}

func TestDirObjectsAreWhatAnAPIServerWouldHold(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", `
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: s, namespace: x, resourceVersion: "77", creationTimestamp: 2020-01-02T03:04:05Z}
  data: {tls.key: a2V5, ca.crt: b3ZlcnJpZGRlbg==}
  stringData: {ca.crt: CA}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}
---
apiVersion: v1
kind: ServiceList
items:
- metadata: {name: svc}
  spec: {ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: c, namespace: nonsense}
---
apiVersion: projectcontour.io/v1
kind: HTTPProxy
metadata: {name: p, namespace: x}
spec:
  routes:
  - retryPolicy: {perTryTimeout: 1s}
    requestRedirectPolicy: {hostname: a.test}
    noSuchField: 1
`)
	w.start()
	w.untilShown(`
HTTPProxy observed 0: x/p
IngressClass observed 0: /c
Service observed 0: default/svc
Secret observed 0: x/s
warning HTTPProxy x/p: a.yaml:22: unknown field "spec.routes[0].noSuchField"`)
	s := w.ix.Snapshot()
	secret := s.Object(index.ObjectKey{Kind: kinds.Secret, Namespace: "x", Name: "s"}).Body.(*corev1.Secret)
	if string(secret.Data["ca.crt"]) != "CA" || string(secret.Data["tls.key"]) != "key" || secret.Type != corev1.SecretTypeOpaque ||
		secret.ResourceVersion != "" || secret.CreationTimestamp.Year() != 2020 {
		t.Errorf("secret %+v", secret)
	}
	p := s.Object(index.ObjectKey{Kind: kinds.HTTPProxy, Namespace: "x", Name: "p"}).Body.(*contourv1.HTTPProxy)
	if r := p.Spec.Routes[0]; r.RetryPolicy.NumRetries != 1 || *r.RequestRedirectPolicy.StatusCode != 302 {
		t.Errorf("route %+v", r)
	}
}

func TestDirNeedsAFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{file, file + ".missing"} {
		if _, err := NewDir(path, newWorld(t), Options{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", path, err)
		}
	}
}
