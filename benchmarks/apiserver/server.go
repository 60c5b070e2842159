// Package apiserver is the synthetic source: as much of a Kubernetes API server
// as a watcher sees of one, for clusters larger than a real one can be filled
// with in the time of a benchmark. Objects are encoded once, when they are
// written, as a real server's watch cache does; so what a client pays for is its
// own decoding.
//
//	workload ──Put──▶ store of encoded objects ──list, watch, WatchList──▶ client-go
//
// It serves lists in pages, watches, and watches that begin with a list
// (sendInitialEvents); core kinds in protobuf, custom resources in JSON. A list is
// consistent as long as nothing is written while it is paged through, which is
// what benchmarks do. Writes over HTTP are accepted and dropped (status).
package apiserver

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// Server serves the kinds of package kinds.
type Server struct {
	http    *http.Server
	address string
	serving sync.WaitGroup

	mu      sync.Mutex
	version uint64
	stores  map[string]*store // by GVR path: "/api/v1/services"
	byKind  map[string]*store
}

// Start serves on a free port of loopback.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{address: "http://" + l.Addr().String(), stores: map[string]*store{}, byKind: map[string]*store{}, version: 1000}
	for i := range kinds.All {
		w := &kinds.All[i]
		st := newStore(w)
		s.stores[pathOf(w)] = st
		s.byKind[string(w.Kind)] = st
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	s.serving.Go(func() { _ = s.http.Serve(l) }) // ends by Close alone
	return s, nil
}

// Address is the server's URL.
func (s *Server) Address() string { return s.address }

// Close ends the server and all watches.
func (s *Server) Close() error {
	err := s.http.Close()
	s.serving.Wait()
	return err
}

// Kubeconfig gives a kubeconfig file's content for the server.
func (s *Server) Kubeconfig() []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: bench
clusters: [{name: bench, cluster: {server: %q}}]
users: [{name: bench, user: {}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
`, s.address)
}

// Load puts all objects of a workload.
func (s *Server) Load(w *workload.Workload) error {
	for o := range w.Objects() {
		if _, err := s.Write([]workload.Change{{Object: o}}); err != nil {
			return err
		}
	}
	return nil
}

// Write puts or deletes the objects of an edit, in order, and gives when the
// first of them was there for watchers to see.
func (s *Server) Write(changes []workload.Change) (time.Time, error) {
	var at time.Time
	for _, c := range changes {
		kind := c.Object.GetObjectKind().GroupVersionKind().Kind
		st := s.byKind[kind]
		if st == nil {
			return at, fmt.Errorf("kind %s is not served", kind)
		}
		s.mu.Lock()
		s.version++
		c.Object.SetResourceVersion(index.ResourceVersion(s.version).String())
		e, err := st.encode(c.Object, s.version)
		if at.IsZero() {
			at = time.Now()
		}
		if err == nil {
			st.write(e, c.Deleted)
		}
		s.mu.Unlock()
		if err != nil {
			return at, err
		}
	}
	return at, nil
}

// Hold makes lists of a kind wait until Release.
func (s *Server) Hold(k index.Kind) { s.byKind[string(k)].hold() }

// Release ends Hold.
func (s *Server) Release(k index.Kind) { s.byKind[string(k)].release() }

func pathOf(w *kinds.Watched) string {
	gv := w.GVK.GroupVersion()
	if gv.Group == "" {
		return "/api/" + gv.Version + "/" + w.Resource
	}
	return "/apis/" + gv.String() + "/" + w.Resource
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if st := s.stores[path]; st != nil && r.Method == http.MethodGet {
		s.serveKind(w, r, st)
		return
	}
	switch {
	case r.Method != http.MethodGet:
		s.drop(w, r)
	case path == "/readyz" || path == "/healthz" || path == "/livez":
		_, _ = w.Write([]byte("ok"))
	case path == "/version":
		writeJSON(w, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.2"})
	case path == "/apis":
		writeJSON(w, groups())
	case path == "/api/v1/namespaces/kube-system":
		writeJSON(w, map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": "kube-system", "uid": "c0ffee00-0000-4000-8000-000000000000"}})
	case strings.HasPrefix(path, "/api"):
		writeJSON(w, resources(path))
	default:
		http.NotFound(w, r)
	}
}

// drop accepts a write of status without keeping it.
func (s *Server) drop(w http.ResponseWriter, r *http.Request) {
	http.Error(w, "the synthetic source takes no "+r.Method, http.StatusMethodNotAllowed)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}

// groups is the discovery document of all groups but core.
func groups() map[string]any {
	var list []map[string]any
	seen := map[string]bool{"": true}
	for i := range kinds.All {
		gv := kinds.All[i].GVK.GroupVersion()
		if seen[gv.Group] {
			continue
		}
		seen[gv.Group] = true
		v := map[string]any{"groupVersion": gv.String(), "version": gv.Version}
		list = append(list, map[string]any{"name": gv.Group, "versions": []any{v}, "preferredVersion": v})
	}
	return map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": list}
}

// resources is the discovery document of one group and version.
func resources(path string) map[string]any {
	var list []map[string]any
	gv := ""
	for i := range kinds.All {
		w := &kinds.All[i]
		if strings.HasPrefix(pathOf(w), path+"/") {
			gv = w.GVK.GroupVersion().String()
			list = append(list, map[string]any{"name": w.Resource, "kind": w.GVK.Kind, "namespaced": w.Namespaced, "verbs": []string{"get", "list", "watch"}})
		}
	}
	return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": list}
}
