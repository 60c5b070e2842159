package k8swatch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// api is an API server: it lists in pages, streams lists, watches, compacts, and
// fails on demand.
type api struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	changed chan struct{} // closed at each change
	watches chan struct{} // closed to cut all watches
	version int
	objects map[string]map[string]stored // by resource, by ns/name
	events  map[string][]event
	oldest  int // versions below are compacted
	pages   map[string]listed
	down    bool

	// streams: WatchList is served. unmarked: and never marks the end.
	streams, unmarked bool
	ready             bool
	missing           map[string]bool // resources that are not served
	// refuse gives a status other than 0 to answer a request with.
	refuse map[string]func(*http.Request) int
	// gate is called before a page, or the end mark of a streamed list, leaves.
	gate    func(resource, cont string)
	lists   []*http.Request
	refused int
}

type stored struct {
	version int
	object  metav1.Object
}

type event struct {
	kind    string
	version int
	body    json.RawMessage
}

type listed struct {
	version int
	items   []json.RawMessage
}

func newAPI(t *testing.T) *api {
	a := &api{
		t: t, version: 100, ready: true, streams: true,
		changed: make(chan struct{}), watches: make(chan struct{}),
		objects: map[string]map[string]stored{}, events: map[string][]event{}, pages: map[string]listed{},
		missing: map[string]bool{}, refuse: map[string]func(*http.Request) int{}, gate: func(string, string) {},
	}
	a.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "the-uid"}})
	a.server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.cut()
		a.server.Close()
		for _, r := range a.lists {
			if q := r.URL.Query(); q.Get("resourceVersion") != "" {
				t.Errorf("a list that is not a consistent read: %s", r.URL)
			}
		}
	})
	return a
}

func (a *api) config() *rest.Config { return &rest.Config{Host: a.server.URL} }

// do changes what the server does.
func (a *api) do(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func watchedOf(o metav1.Object) *kinds.Watched {
	name := fmt.Sprintf("%T", o)
	return kinds.Find(index.Kind(name[strings.LastIndex(name, ".")+1:]))
}

func keyIn(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// put creates or changes an object and gives its version.
func (a *api) put(o metav1.Object) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := watchedOf(o)
	if a.objects[w.Resource] == nil {
		a.objects[w.Resource] = map[string]stored{}
	}
	kind := "ADDED"
	if _, old := a.objects[w.Resource][keyIn(o)]; old {
		kind = "MODIFIED"
	}
	a.version++
	a.objects[w.Resource][keyIn(o)] = stored{a.version, o}
	a.happened(w, kind, a.version, o)
	return a.version
}

func (a *api) remove(o metav1.Object) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := watchedOf(o)
	a.version++
	delete(a.objects[w.Resource], keyIn(o))
	a.happened(w, "DELETED", a.version, o)
	return a.version
}

// happened is called with mu held.
func (a *api) happened(w *kinds.Watched, kind string, version int, o metav1.Object) {
	a.events[w.Resource] = append(a.events[w.Resource], event{kind, version, encode(w, version, o)})
	close(a.changed)
	a.changed = make(chan struct{})
}

func encode(w *kinds.Watched, version int, o metav1.Object) json.RawMessage {
	o.SetResourceVersion(strconv.Itoa(version))
	o.(kinds.Object).SetGroupVersionKind(w.GVK)
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

// bookmark sends all watches of a kind the current version.
func (a *api) bookmark(kind index.Kind) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := kinds.Find(kind)
	a.version++
	a.happened(w, "BOOKMARK", a.version, w.New())
	return a.version
}

// cut ends all watches.
func (a *api) cut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.watches)
	a.watches = make(chan struct{})
}

// forget compacts everything before now.
func (a *api) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.oldest, a.events = a.version, map[string][]event{}
}

func (a *api) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	down, ready, groups := a.down, a.ready, a.groups()
	a.mu.Unlock()
	switch {
	case down:
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/readyz":
		if !ready {
			status(rw, http.StatusInternalServerError, "InternalError", "not ready")
		}
	case r.URL.Path == "/apis":
		answer(rw, groups)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		a.serve(rw, r, "kube-system", func() { answer(rw, a.objects["namespaces"]["/kube-system"].object) })
	default:
		a.serveResource(rw, r)
	}
}

func (a *api) groups() metav1.APIGroupList {
	var out metav1.APIGroupList
	for _, w := range kinds.All {
		if a.missing[w.Resource] || slices.ContainsFunc(out.Groups, func(g metav1.APIGroup) bool { return g.Name == w.GVK.Group }) {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: w.GVK.GroupVersion().String(), Version: w.GVK.Version}
		out.Groups = append(out.Groups, metav1.APIGroup{Name: w.GVK.Group, Versions: []metav1.GroupVersionForDiscovery{v}})
	}
	return out
}

// count makes each error's text differ from the last.
func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refused++
	return a.refused
}

func (a *api) serve(rw http.ResponseWriter, r *http.Request, what string, then func()) {
	a.mu.Lock()
	refuse := a.refuse[what]
	a.mu.Unlock()
	if refuse != nil {
		if code := refuse(r); code != 0 {
			status(rw, code, map[int]string{403: "Forbidden", 404: "NotFound"}[code], fmt.Sprintf("%s is refused (%d)", what, a.count()))
			return
		}
	}
	then()
}

func (a *api) serveResource(rw http.ResponseWriter, r *http.Request) {
	for i := range kinds.All {
		w := &kinds.All[i]
		prefix := "/apis/" + w.GVK.GroupVersion().String()
		if w.GVK.Group == "" {
			prefix = "/api/v1"
		}
		switch r.URL.Path {
		case prefix:
			a.resources(rw, w)
			return
		case prefix + "/" + w.Resource:
			a.serve(rw, r, w.Resource, func() { a.listOrWatch(rw, r, w) })
			return
		}
	}
	status(rw, http.StatusNotFound, "NotFound", "no such path")
}

func (a *api) resources(rw http.ResponseWriter, of *kinds.Watched) {
	var out metav1.APIResourceList
	a.do(func() {
		for _, w := range kinds.All {
			if w.GVK.GroupVersion() == of.GVK.GroupVersion() && !a.missing[w.Resource] {
				out.APIResources = append(out.APIResources, metav1.APIResource{Name: w.Resource})
			}
		}
	})
	answer(rw, out)
}

func (a *api) listOrWatch(rw http.ResponseWriter, r *http.Request, w *kinds.Watched) {
	a.mu.Lock()
	missing := a.missing[w.Resource]
	a.mu.Unlock()
	switch {
	case missing:
		status(rw, http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	case r.URL.Query().Get("watch") != "":
		a.watch(rw, r, w)
	default:
		a.list(rw, r, w)
	}
}

func (a *api) list(rw http.ResponseWriter, r *http.Request, w *kinds.Watched) {
	q := r.URL.Query()
	limit, _ := strconv.Atoi(q.Get("limit"))
	cont := q.Get("continue")
	a.gate(w.Resource, cont)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lists = append(a.lists, r)
	page, ok := a.pages[cont]
	if cont == "" {
		page = a.snapshot(w)
	} else if !ok {
		status(rw, http.StatusGone, "Expired", "the continue token is too old")
		return
	}
	out := map[string]any{"apiVersion": w.GVK.GroupVersion().String(), "kind": w.GVK.Kind + "List"}
	meta := map[string]any{"resourceVersion": strconv.Itoa(page.version)}
	if limit > 0 && limit < len(page.items) {
		token := fmt.Sprintf("%s-%d-%d", w.Resource, page.version, len(page.items)-limit)
		a.pages[token] = listed{page.version, page.items[limit:]}
		meta["continue"], page.items = token, page.items[:limit]
	}
	out["metadata"], out["items"] = meta, page.items
	answer(rw, out)
}

// snapshot is called with mu held.
func (a *api) snapshot(w *kinds.Watched) listed {
	out := listed{version: a.version, items: []json.RawMessage{}}
	for _, k := range slices.Sorted(maps.Keys(a.objects[w.Resource])) {
		s := a.objects[w.Resource][k]
		out.items = append(out.items, encode(w, s.version, s.object))
	}
	return out
}

func (a *api) watch(rw http.ResponseWriter, r *http.Request, w *kinds.Watched) {
	q := r.URL.Query()
	initial := q.Get("sendInitialEvents") == "true"
	from, _ := strconv.Atoi(q.Get("resourceVersion"))
	a.mu.Lock()
	cut, oldest, streams, unmarked := a.watches, a.oldest, a.streams, a.unmarked
	now := a.snapshot(w)
	a.mu.Unlock()
	switch {
	case initial && !streams:
		status(rw, http.StatusUnprocessableEntity, "Invalid", "sendInitialEvents: Forbidden")
		return
	case from > 0 && (from < oldest || from > now.version):
		status(rw, http.StatusGone, "Expired", "too old resource version")
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	s := &stream{rw, json.NewEncoder(rw)}
	if initial {
		for _, o := range now.items {
			s.send("ADDED", o)
		}
		rw.(http.Flusher).Flush()
		a.gate(w.Resource, "end")
		if unmarked {
			<-r.Context().Done()
			return
		}
		end := w.New()
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		s.send("BOOKMARK", encode(w, now.version, end))
		from = now.version
	}
	a.follow(r, s, w, from, cut)
}

func (a *api) follow(r *http.Request, s *stream, w *kinds.Watched, from int, cut chan struct{}) {
	for {
		a.mu.Lock()
		changed, events := a.changed, a.events[w.Resource]
		a.mu.Unlock()
		at, _ := slices.BinarySearchFunc(events, from+1, func(e event, v int) int { return cmp.Compare(e.version, v) })
		for _, e := range events[at:] {
			s.send(e.kind, e.body)
			from = e.version
		}
		s.rw.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

type stream struct {
	rw  http.ResponseWriter
	out *json.Encoder
}

func (s *stream) send(kind string, o json.RawMessage) {
	_ = s.out.Encode(map[string]any{"type": kind, "object": o})
}

func status(rw http.ResponseWriter, code int, reason, message string) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_ = json.NewEncoder(rw).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   "Failure", Reason: metav1.StatusReason(reason), Message: message, Code: int32(code),
	})
}

func answer(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v)
}
