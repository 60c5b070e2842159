package k8swatch

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}}}
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
			v := w.api.put(svc("one", 8080))
			s = w.until("changed", func(s *index.Snapshot) bool { return port(s, "x", "one") == 8080 })
			if got := s.Kind(kinds.Service); int(got.Frontier.Version) != v || int(got.Events) != v {
				t.Errorf("frontier %s, events %s, want %d", got.Frontier, got.Events, v)
			}
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

// A streamed list that never ends is given up for a paged one.
func TestKubeStreamedListWithoutEnd(t *testing.T) {
	w := newKubeWorld(t)
	w.api.unmarked = true
	w.api.put(svc("a", 80))
	o := w.options()
	k, err := NewKube(w.api.config(), w.world, o)
	must(t, err)
	k.stall = 20 * time.Millisecond
	w.run(k)
	w.until("observed", allObserved)
}

func TestKubeListCutInTheMiddle(t *testing.T) {
	w := newKubeWorld(t)
	w.api.streams = false
	for _, n := range []string{"a", "b", "c"} {
		w.api.put(svc(n, 80))
	}
	w.api.refuse["services"] = func(r *http.Request) int {
		if r.URL.Query().Get("continue") != "" {
			panic(http.ErrAbortHandler)
		}
		return 0
	}
	w.start()
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if s.Kind(kinds.Service).Complete() || !has(s, kinds.Service, "x", "a") {
		t.Errorf("after the cut:\n%s", show(s))
	}
	// What was seen and is gone before the list at last succeeds goes with it.
	w.api.remove(svc("a", 80))
	w.api.do(func() { w.api.refuse = map[string]func(*http.Request) int{} })
	s = w.until("observed", kindIs(kinds.Service, index.Observed))
	if has(s, kinds.Service, "x", "a") || !has(s, kinds.Service, "x", "c") {
		t.Errorf("at last:\n%s", show(s))
	}
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

func TestKubeForbiddenKindStopsNoOther(t *testing.T) {
	w := newKubeWorld(t)
	w.api.put(svc("a", 80))
	w.api.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "s"}})
	forbidden := func(*http.Request) int { return http.StatusForbidden }
	w.api.refuse["secrets"] = forbidden
	w.start()
	s := w.until("all but one", func(s *index.Snapshot) bool {
		for _, k := range s.Kinds() {
			if k.Complete() == (k.Kind == kinds.Secret) {
				return false
			}
		}
		return s.Kind(kinds.Secret).State == index.Forbidden
	})
	if e := s.Kind(kinds.Secret).LastError; !strings.Contains(e, "secrets is refused") {
		t.Errorf("last error %q", e)
	}
	w.api.do(func() { delete(w.api.refuse, "secrets") })
	w.until("allowed", kindIs(kinds.Secret, index.Observed))

	// Forbidden again: it ages, and recovers.
	w.api.do(func() { w.api.refuse["secrets"] = forbidden })
	w.api.cut()
	s = w.until("forbidden", kindIs(kinds.Secret, index.Forbidden))
	if !s.Kind(kinds.Secret).Frontier.Observed || !has(s, kinds.Secret, "x", "s") {
		t.Errorf("it was lost:\n%s", show(s))
	}
	w.api.do(func() { delete(w.api.refuse, "secrets") })
	w.until("allowed", kindIs(kinds.Secret, index.Observed))
	if n := strings.Count(w.logged(), "kind is forbidden"); n != 2 {
		t.Errorf("%d log lines for 2 changes of state:\n%s", n, w.logged())
	}
}

// Where list is allowed and watch is not, every list is a proof, but all is not well.
func TestKubeWatchForbidden(t *testing.T) {
	w := newKubeWorld(t)
	w.api.put(svc("a", 80))
	w.api.refuse["services"] = func(r *http.Request) int {
		if r.URL.Query().Get("watch") != "" {
			return http.StatusForbidden
		}
		return 0
	}
	w.start()
	w.until("forbidden", kindIs(kinds.Service, index.Forbidden))
	v := w.api.put(svc("b", 80))
	s := w.until("listed again", frontierIs(kinds.Service, v))
	if s.Kind(kinds.Service).State != index.Forbidden {
		t.Errorf("state %s", s.Kind(kinds.Service).State)
	}
}

// "Not served" is evidence only from the discovery of a server that is ready,
// and never for a kind that each API server has.
func TestKubeMissingKind(t *testing.T) {
	w := newKubeWorld(t)
	w.api.ready = false
	w.api.missing["httpproxies"] = true
	w.api.missing["services"] = true
	w.start()
	s := w.until("failing", func(s *index.Snapshot) bool {
		return strings.Contains(s.Kind(kinds.HTTPProxy).LastError, "not ready") && s.Kind(kinds.Service).State == index.Failing
	})
	if s.Kind(kinds.HTTPProxy).Complete() {
		t.Error("complete on the word of a server that is not ready")
	}
	w.api.do(func() { w.api.ready = true })
	s = w.until("absent", kindIs(kinds.HTTPProxy, index.Absent))
	if s.Kind(kinds.Service).Complete() {
		t.Error("services are taken for absent")
	}
	w.api.do(func() { clear(w.api.missing) })
	w.api.put(prx("p"))
	w.until("served", func(s *index.Snapshot) bool { return has(s, kinds.HTTPProxy, "x", "p") && allObserved(s) })
}

func TestKubeUnreachable(t *testing.T) {
	w := newKubeWorld(t)
	w.api.down = true
	w.start()
	w.until("failing", func(s *index.Snapshot) bool {
		return s.Kind(kinds.Service).State == index.Failing && s.Kind(kinds.Secret).State == index.Failing
	})
	w.api.do(func() { w.api.down = false })
	w.until("observed", allObserved)
	if n := strings.Count(w.logged(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, w.logged())
	}
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

func TestKubeWithoutRightToKubeSystem(t *testing.T) {
	w := newKubeWorld(t)
	w.api.refuse["kube-system"] = func(*http.Request) int { return http.StatusForbidden }
	w.start()
	s := w.until("observed", allObserved)
	if got, want := s.Source(), addressID(w.api.config()); got != want {
		t.Errorf("source %s, want %s", got, want)
	}
	if !strings.Contains(w.logged(), "kube-system can't be read") {
		t.Errorf("nothing is said:\n%s", w.logged())
	}
}

// The API server's store was put back to an earlier state while we watched.
func TestKubeRolledBack(t *testing.T) {
	w := newKubeWorld(t)
	w.api.put(svc("a", 80))
	w.api.put(svc("b", 80))
	w.start()
	before := w.until("observed", allObserved).Source()
	w.api.do(func() {
		w.api.version, w.api.oldest = 102, 0
		delete(w.api.objects["services"], "x/b")
		w.api.events = map[string][]event{}
	})
	w.api.cut()
	s := w.until("rolled back", frontierIs(kinds.Service, 102))
	if has(s, kinds.Service, "x", "b") {
		t.Errorf("the future is believed:\n%s", show(s))
	}
	if s.Source() == before || !strings.HasPrefix(s.Source(), before+"-") {
		t.Errorf("source %s, was %s", s.Source(), before)
	}
	if !strings.Contains(w.logged(), "level=ERROR") {
		t.Errorf("not said loudly:\n%s", w.logged())
	}
}

func TestKubeVerify(t *testing.T) {
	w := newKubeWorld(t)
	w.start()
	before := w.until("observed", allObserved).Source()
	current, err := w.kube.Verify(t.Context(), kinds.HTTPProxy)
	if err != nil || current != 101 {
		t.Fatalf("current version %s, %v", current, err)
	}
	if w.kube.Rollback(index.Cause{}, kinds.HTTPProxy, current, current) || w.ix.Snapshot().Source() != before {
		t.Error("a watch that lags is taken for a rollback")
	}
	if !w.kube.Rollback(index.Cause{}, kinds.HTTPProxy, current+1, current) || w.ix.Snapshot().Source() == before {
		t.Error("a rollback is not noticed")
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
