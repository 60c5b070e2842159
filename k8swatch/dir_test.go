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

const unparsable = "apiVersion: v1\nkind: [Service\n"

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

// A file that does not parse could hold any kind: what the others hold flows, no
// list is complete until it is mended.
func TestDirBrokenFileAtTheStart(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+unparsable)
	w.old("b.yaml", service("x", "two"))
	w.start()
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if !has(s, kinds.Service, "x", "one") || !has(s, kinds.Service, "x", "two") {
		t.Errorf("what can be read did not flow:\n%s", show(s))
	}
	for _, k := range s.Kinds() {
		if k.Complete() {
			t.Errorf("%s is complete", k.Kind)
		}
	}
	if p := s.Problems(); len(p) != 1 || !strings.Contains(p[0].Message, "a.yaml: line 6: did not find expected") {
		t.Errorf("problems: %v", p)
	}

	w.replace("a.yaml", service("x", "three"))
	w.untilShown(`Service observed 0: x/three x/two`)
}

func TestDirBrokenFileLater(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+service("x", "two"))
	w.old("b.yaml", service("x", "three"))
	w.start()
	w.until("observed", allObserved)
	w.replace("a.yaml", "# a comment makes it longer than it was, so that it is not in doubt for having shrunk\n"+service("x", "one")+"---\n"+strings.Repeat("#\n", 40)+unparsable)
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if !allObserved(s) || !has(s, kinds.Service, "x", "two") {
		t.Errorf("something was lost:\n%s", show(s))
	}
	// Other files are followed all the same.
	w.replace("b.yaml", service("x", "four"))
	w.until("followed", func(s *index.Snapshot) bool {
		return has(s, kinds.Service, "x", "four") && !has(s, kinds.Service, "x", "three")
	})
	w.replace("a.yaml", service("x", "one"))
	w.untilShown(`Service observed 0: x/four x/one`)
}

// A value of the wrong type is the matter of its document alone.
func TestDirBrokenDocument(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+service("x", "two"))
	w.start()
	w.until("observed", allObserved)
	w.replace("a.yaml", strings.Replace(service("x", "one"), "80", "eighty", 1)+"---\n"+strings.Replace(service("x", "two"), "80", "8080", 1))
	s := w.until("changed", func(s *index.Snapshot) bool { return len(s.Problems()) > 0 })
	if got := port(s, "x", "one"); got != 80 {
		t.Errorf("the last good version is lost: port %d", got)
	}
	if got := port(s, "x", "two"); got != 8080 {
		t.Errorf("the document beside it did not flow: port %d", got)
	}
	p := s.Problems()[0]
	if p.Object.String() != "Service x/one" || p.Field != "spec.ports.port" || !strings.Contains(p.Message, "a.yaml:1:") {
		t.Errorf("problem %+v", p)
	}
	if s.Kind(kinds.Service).State != index.Observed {
		t.Errorf("the kind is %s", s.Kind(kinds.Service).State)
	}
}

func port(s *index.Snapshot, ns, name string) int32 {
	o := s.Object(index.ObjectKey{Kind: kinds.Service, Namespace: ns, Name: name})
	if o == nil {
		return -1
	}
	return o.Body.(*corev1.Service).Spec.Ports[0].Port
}

// Without a last good version only the kind of the broken document waits.
func TestDirBrokenDocumentAtTheStart(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", strings.Replace(service("x", "one"), "80", "eighty", 1)+"---\n"+service("x", "two")+"---\n"+proxy("x", "p", "p.test"))
	w.start()
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if s.Kind(kinds.Service).Complete() || !has(s, kinds.Service, "x", "two") || !s.Kind(kinds.HTTPProxy).Complete() {
		t.Errorf("now:\n%s", show(s))
	}
	w.replace("a.yaml", service("x", "one"))
	w.untilShown(`Service observed 0: x/one`)
}

func TestDirWhatIsBeingWrittenDeletesNothing(t *testing.T) {
	w := newDirWorld(t)
	two := service("x", "one") + "---\n" + service("x", "two")
	w.old("a.yaml", two)
	o := w.options()
	o.Settle = time.Hour // nothing is ever still for so long
	w.startWith(o)
	w.until("observed", allObserved)
	for i, half := range []string{"", service("x", "one"), two[:len(two)-20], "gone"} {
		if w.overwrite("a.yaml", half); half == "gone" {
			w.remove("a.yaml")
		}
		// Another file's change shows that the folder was looked at again.
		marker := fmt.Sprintf("marker-%d", i)
		w.replace("b.yaml", service("x", marker))
		s := w.until(marker, func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", marker) })
		if !has(s, kinds.Service, "x", "one") || !has(s, kinds.Service, "x", "two") || len(s.Problems()) > 0 {
			t.Errorf("after %q:\n%s", half, show(s))
		}
	}
	w.overwrite("a.yaml", two+"---\n"+service("x", "three"))
	w.until("written", func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", "three") })
}

func TestDirWhatIsStillIsBelieved(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one"))
	w.old("b.yaml", service("x", "two"))
	w.start()
	w.until("observed", allObserved)
	w.overwrite("a.yaml", "")
	w.untilShown(`Service observed 0: x/two`)
	w.remove("b.yaml")
	w.untilShown(``)
}

// An empty file that was written just now may be one that another process
// truncated and is about to fill: its folder is not complete yet.
func TestDirEmptyFileAtTheStart(t *testing.T) {
	w := newDirWorld(t)
	w.overwrite("a.yaml", "")
	o := w.options()
	o.Settle = time.Hour
	w.startWith(o)
	s := w.until("listing", kindIs(kinds.Service, index.Listing))
	if s.Kind(kinds.Service).Complete() {
		t.Error("complete")
	}
	w.overwrite("a.yaml", service("x", "one"))
	w.untilShown(`Service observed 0: x/one`)
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

func TestDirFolderGoneProvesNothing(t *testing.T) {
	w := newDirWorld(t)
	w.path = filepath.Join(w.path, "folder")
	must(t, os.Mkdir(w.path, 0o755))
	w.old("a.yaml", service("x", "one"))
	o := w.options()
	o.Rescan = 10 * time.Millisecond
	w.startWith(o)
	w.until("observed", allObserved)

	must(t, os.Rename(w.path, w.path+".away"))
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if !has(s, kinds.Service, "x", "one") || !allObserved(s) || len(s.Problems()) != 1 {
		t.Errorf("gone:\n%s", show(s))
	}
	must(t, os.Mkdir(w.path, 0o755))
	s = w.until("replaced", func(s *index.Snapshot) bool {
		return strings.Contains(s.Kind(kinds.Service).LastError, "replaced by an empty")
	})
	if !has(s, kinds.Service, "x", "one") {
		t.Errorf("replaced by an empty one:\n%s", show(s))
	}
	w.replace("b.yaml", service("x", "two"))
	w.untilShown(`Service observed 0: x/two`)
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

// Events may be lost: the regular look at all files finds what they missed.
func TestDirWithoutEvents(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one"))
	o := w.options()
	o.Rescan = 10 * time.Millisecond
	o.Debounce = time.Hour // no event is ever acted upon
	w.startWith(o)
	w.until("observed", allObserved)
	w.replace("a.yaml", service("x", "another"))
	w.untilShown(`Service observed 0: x/another`)
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
