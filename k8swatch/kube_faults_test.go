package k8swatch

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

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
	e := s.Kind(kinds.Secret).LastError
	if !strings.Contains(e, "secrets is refused") {
		t.Errorf("last error %q", e)
	}
	w.until("tried again", func(s *index.Snapshot) bool { return s.Kind(kinds.Secret).LastError != e })
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
	w.api.missing["endpointslices"] = true
	w.start()
	s := w.until("failing", func(s *index.Snapshot) bool {
		return strings.Contains(s.Kind(kinds.HTTPProxy).LastError, "not ready") && s.Kind(kinds.EndpointSlice).State == index.Failing
	})
	if s.Kind(kinds.HTTPProxy).Complete() {
		t.Error("complete on the word of a server that is not ready")
	}
	w.api.do(func() { w.api.ready = true })
	s = w.until("absent", kindIs(kinds.HTTPProxy, index.Absent))
	if k := s.Kind(kinds.EndpointSlice); k.State != index.Failing {
		t.Errorf("EndpointSlices are %s", k.State)
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
