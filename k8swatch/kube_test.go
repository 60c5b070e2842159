package k8swatch

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// kubeWorld is an API server with a source that watches it.
type kubeWorld struct {
	*world
	api  *api
	kube *Kube
}

func newKubeWorld(t *testing.T) *kubeWorld {
	t.Helper()
	return &kubeWorld{world: newWorld(t), api: newAPI(t)}
}

func (w *kubeWorld) start() (stop func()) {
	w.t.Helper()
	o := w.options()
	o.PageSize = 2
	k, err := NewKube(w.api.config(), w.world, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.kube = k
	return w.run(k)
}

func svc(name string, port int32) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, Finalizers: []string{"f"}}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}
}

func prx(name string) *contourv1.HTTPProxy {
	return &contourv1.HTTPProxy{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}}
}

// gates holds back answers until they are opened.
type gates struct {
	mu   sync.Mutex
	shut map[string]chan struct{}
}

func (w *kubeWorld) gates(names ...string) *gates {
	g := &gates{shut: map[string]chan struct{}{}}
	for _, n := range names {
		g.shut[n] = make(chan struct{})
	}
	w.api.do(func() {
		w.api.gate = func(resource, cont string) {
			g.mu.Lock()
			c := g.shut[resource+" "+cont]
			g.mu.Unlock()
			if c != nil {
				select {
				case <-c:
				case <-w.t.Context().Done():
				}
			}
		}
	})
	return g
}

func (g *gates) open(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut[name])
	delete(g.shut, name)
}

func frontierIs(kind index.Kind, v int) func(*index.Snapshot) bool {
	return func(s *index.Snapshot) bool { return s.Kind(kind).Frontier.Version == index.ResourceVersion(v) }
}

func TestKubeListsThenFollows(t *testing.T) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams=%v", streams), func(t *testing.T) {
			w := newKubeWorld(t)
			w.api.streams = streams
			w.api.put(svc("one", 80))
			w.api.put(svc("two", 80))
			w.api.put(prx("p"))
			w.start()
			s := w.until("observed", allObserved)
			if got := s.Kind(kinds.Service).Frontier.Version; got != 104 {
				t.Errorf("frontier %s, want the list's version 104", got)
			}
			wantTrimmed(t, s)
			v := w.api.put(svc("one", 8080))
			s = w.until("changed", func(s *index.Snapshot) bool { return port(s, "x", "one") == 8080 })
			if got := s.Kind(kinds.Service); int(got.Frontier.Version) != v || int(got.Events) != v {
				t.Errorf("frontier %s, events %s, want %d", got.Frontier, got.Events, v)
			}
			wantTrimmed(t, s)
			v = w.api.remove(svc("two", 80))
			s = w.until("deleted", func(s *index.Snapshot) bool { return !has(s, kinds.Service, "x", "two") })
			if got := s.Kind(kinds.Service).Frontier.Version; int(got) != v {
				t.Errorf("frontier %s, want that of the deletion, %d", got, v)
			}
			v = w.api.bookmark(kinds.Service)
			s = w.until("bookmark", frontierIs(kinds.Service, v))
			if got := s.Kind(kinds.Service).Events; int(got) == v {
				t.Error("a bookmark counts as an event")
			}
		})
	}
}

func wantTrimmed(t *testing.T, s *index.Snapshot) {
	t.Helper()
	for o := range s.Objects(kinds.Service) {
		if o.Body.(*corev1.Service).Finalizers != nil {
			t.Errorf("%s is not trimmed", o)
		}
	}
}

func TestKubePagesAreEagerAndProveNothing(t *testing.T) {
	w := newKubeWorld(t)
	w.api.streams = false
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		w.api.put(svc(n, 80))
	}
	g := w.gates("services services-106-1")
	w.start()
	s := w.until("two pages", func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", "d") })
	if s.Kind(kinds.Service).Complete() || has(s, kinds.Service, "x", "e") {
		t.Errorf("before the last page:\n%s", show(s))
	}
	g.open("services services-106-1")
	s = w.until("complete", frontierIs(kinds.Service, 106))
	if !has(s, kinds.Service, "x", "e") {
		t.Errorf("after the last page:\n%s", show(s))
	}
}

func TestKubeStreamedListIsEagerAndProvesNothing(t *testing.T) {
	w := newKubeWorld(t)
	w.api.put(svc("a", 80))
	g := w.gates("services end")
	w.start()
	s := w.until("an object", func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", "a") })
	if s.Kind(kinds.Service).Complete() {
		t.Error("complete before the end of the list")
	}
	g.open("services end")
	w.until("complete", frontierIs(kinds.Service, 102))
}

// After "410 gone" the kind is listed anew. That replaces; at no moment is
// anything less known than before.
func TestKubeRelistReplaces(t *testing.T) {
	for _, streams := range []bool{true, false} {
		t.Run(fmt.Sprintf("streams=%v", streams), func(t *testing.T) {
			w := newKubeWorld(t)
			w.api.streams = streams
			for _, n := range []string{"stays", "goes", "stays-too"} {
				w.api.put(svc(n, 80))
			}
			w.start()
			w.until("observed", allObserved)
			n := w.transactions()
			w.api.do(func() { w.api.down = true })
			w.api.cut()
			w.until("failing", kindIs(kinds.Service, index.Failing))
			w.api.remove(svc("goes", 80))
			w.api.put(svc("comes", 80))
			w.api.forget()
			w.api.do(func() { w.api.down = false })
			s := w.until("relisted", func(s *index.Snapshot) bool {
				return has(s, kinds.Service, "x", "comes") && s.Kind(kinds.Service).State == index.Observed
			})
			if has(s, kinds.Service, "x", "goes") || !has(s, kinds.Service, "x", "stays") {
				t.Errorf("after:\n%s", show(s))
			}
			for _, changes := range w.since(n) {
				for _, c := range changes {
					if d, ok := c.(index.Delete); ok {
						t.Errorf("deleted %s", d.Key)
					}
				}
			}
		})
	}
}

// What is seen while a kind is listed anew says nothing of what is not.
func TestKubeRelistMovesNoFrontierBeforeItsEnd(t *testing.T) {
	w := newKubeWorld(t)
	w.start()
	before := w.until("observed", allObserved).Kind(kinds.Service).Frontier
	g := w.gates("services end")
	w.api.do(func() { w.api.down = true })
	w.api.cut()
	v := w.api.put(svc("new", 80))
	w.api.forget()
	w.api.do(func() { w.api.down = false })
	s := w.until("seen", func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", "new") })
	if got := s.Kind(kinds.Service).Frontier; got != before {
		t.Errorf("frontier %s before the end of the list, was %s", got, before)
	}
	g.open("services end")
	w.until("listed", frontierIs(kinds.Service, v))
}

func TestKubeSaysWhichClusterBeforeAnyObject(t *testing.T) {
	w := newKubeWorld(t)
	w.api.put(svc("a", 80))
	w.start()
	w.until("observed", allObserved)
	for _, changes := range w.since(0) {
		for _, c := range changes {
			switch c.(type) {
			case index.SourceID:
				if got, want := w.ix.Snapshot().Source(), shortHash("uid", "the-uid"); got != want {
					t.Errorf("source %s, want %s", got, want)
				}
				return
			case index.Upsert, index.Replace:
				t.Fatal("an object came before the source id")
			}
		}
	}
}

func TestKubeNeverFetchesHelmReleases(t *testing.T) {
	w := newKubeWorld(t)
	w.api.streams = false
	w.start()
	w.until("observed", allObserved)
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	for _, r := range w.api.lists {
		want := ""
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			want = "type!=helm.sh/release.v1"
		}
		if got := r.URL.Query().Get("fieldSelector"); got != want {
			t.Errorf("%s: field selector %q", r.URL.Path, got)
		}
	}
}
