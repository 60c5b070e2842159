package admin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// typeWords are what explain calls the resource types; typeNames has other words
// for them that are understood.
var (
	typeWords = map[string]string{
		delta.Cluster: "cluster", delta.Endpoints: "endpoints", delta.Listener: "listener",
		delta.RouteConfiguration: "route", delta.ScopedRoutes: "scope", delta.Secret: "sds",
	}
	typeNames = map[string]string{
		"cluster": delta.Cluster, "clusters": delta.Cluster, "cds": delta.Cluster,
		"endpoints": delta.Endpoints, "endpoint": delta.Endpoints, "eds": delta.Endpoints, "clusterloadassignment": delta.Endpoints,
		"listener": delta.Listener, "listeners": delta.Listener, "lds": delta.Listener,
		"route": delta.RouteConfiguration, "routes": delta.RouteConfiguration, "rds": delta.RouteConfiguration, "routeconfiguration": delta.RouteConfiguration,
		"scope": delta.ScopedRoutes, "scopes": delta.ScopedRoutes, "srds": delta.ScopedRoutes, "scopedrouteconfiguration": delta.ScopedRoutes,
		"sds": delta.Secret,
	}
)

const typePrefix = "type.googleapis.com/"

// NotFound says that nothing goes by the name that was asked for.
type NotFound struct {
	Query string
	// Near are names like it, in the form in which explain takes them.
	Near []string
	// Doubt is why it may exist all the same.
	Doubt string
}

// Error says what to do next.
func (e *NotFound) Error() string {
	out := fmt.Sprintf("%q is not known here", e.Query)
	if e.Doubt != "" {
		out += " (" + e.Doubt + ")"
	}
	if len(e.Near) > 0 {
		return out + "; did you mean " + strings.Join(e.Near, ", ") + "?"
	}
	return out + "; ask for cluster/NAME, vhost/HOST or KIND/NAMESPACE/NAME"
}

// errEmptyQuery is that of a query without a word.
var errEmptyQuery = errors.New("nothing is asked for: ask for cluster/NAME, vhost/HOST or KIND/NAMESPACE/NAME")

// Explain tells all about a host ("vhost/a.example"), an xDS resource
// ("cluster/ns/name/80") or a Kubernetes object ("HTTPProxy/ns/name"). A bare name is
// looked for among all of them. The error is a *NotFound when there is nothing.
func (s *Server) Explain(query string) (*Explanation, error) {
	query = strings.Trim(strings.TrimSpace(query), "/")
	if query == "" {
		return nil, errEmptyQuery
	}
	if rest, ok := strings.CutPrefix(query, typePrefix); ok {
		url, name, _ := strings.Cut(rest, "/")
		return s.explainResource(query, index.ResourceKey{Type: typePrefix + url, Name: name})
	}
	word, name, hasName := strings.Cut(query, "/")
	word = strings.ToLower(word)
	switch {
	case hasName && (word == "vhost" || word == "host"):
		return s.explainHost(query, strings.ToLower(name))
	case hasName && typeNames[word] != "":
		return s.explainResource(query, index.ResourceKey{Type: typeNames[word], Name: name})
	case hasName && kindNamed(word) != nil:
		return s.explainObject(query, objectKey(kindNamed(word), name))
	}
	return s.explainBare(query)
}

// kindNamed finds a kind by its name or plural, in any case.
func kindNamed(word string) *kinds.Watched {
	for i := range kinds.All {
		if k := &kinds.All[i]; strings.EqualFold(word, string(k.Kind)) || strings.EqualFold(word, k.Resource) {
			return k
		}
	}
	return nil
}

func objectKey(k *kinds.Watched, name string) index.ObjectKey {
	if !k.Namespaced {
		return index.ObjectKey{Kind: k.Kind, Name: name}
	}
	ns, name, _ := strings.Cut(name, "/")
	return index.ObjectKey{Kind: k.Kind, Namespace: ns, Name: name}
}

// explainBare explains a name without a type: a host, else an object, else a
// resource.
func (s *Server) explainBare(name string) (*Explanation, error) {
	if x, err := s.explainHost(name, strings.ToLower(name)); err == nil {
		return x, nil
	}
	snap := s.o.Index.Snapshot()
	for i := range kinds.All {
		if k := objectKey(&kinds.All[i], name); snap.Object(k) != nil {
			return s.explainObject(name, k)
		}
	}
	for _, t := range s.o.Types {
		if k := (index.ResourceKey{Type: t.URL, Name: name}); snap.Resource(k) != nil {
			return s.explainResource(name, k)
		}
	}
	return nil, s.notFound(snap, name, name)
}

func (s *Server) explainHost(query, host string) (*Explanation, error) {
	g := s.gather("host " + host)
	g.derivations(translate.HostDerivations(host)...)
	if len(g.out.Derivations) == 0 || !g.knownHost(host) {
		return nil, s.notFound(g.snap, query, host)
	}
	g.listeners(host)
	return g.finish(), nil
}

// knownHost: some object names it. The derivation of a host stays for a while when
// its last object has gone.
func (g *gathering) knownHost(host string) bool {
	for k := range g.objects {
		if o := g.snap.Object(k); o != nil {
			for _, h := range translate.HostsOf(o) {
				if h == host {
					return true
				}
			}
		}
	}
	return false
}

// listeners adds those that the host is served by, without all that they rest on.
func (g *gathering) listeners(host string) {
	secure := false
	for _, d := range g.out.Derivations {
		for _, f := range d.Facts {
			secure = secure || strings.HasSuffix(f, "/"+host) && strings.HasPrefix(string(d.ID), "tls/")
		}
	}
	for r := range g.snap.Resources(delta.Listener) {
		if r.Name == translate.PlainListener || secure {
			g.resource(r.ResourceKey)
		}
	}
}

func (s *Server) explainResource(query string, k index.ResourceKey) (*Explanation, error) {
	g := s.gather(k.String())
	r := g.snap.Resource(k)
	if r == nil {
		if t := g.snap.Tombstone(k); t != nil {
			r = t.Last
		}
	}
	if r == nil && !s.anybodyAsks(k) {
		return nil, s.notFound(g.snap, query, k.Name)
	}
	g.resource(k)
	g.follow = func(string) bool { return false }
	if r != nil {
		g.derivations(r.Maker)
		for _, source := range r.Sources {
			g.object(source)
		}
		for _, ref := range r.Refs {
			g.resource(ref)
		}
	}
	g.others = func(string) bool { return true }
	for _, d := range g.out.Derivations {
		g.derivations(d.DemandedBy...)
	}
	return g.finish(), nil
}

// anybodyAsks: some Envoy asks for a resource that is not there.
func (s *Server) anybodyAsks(k index.ResourceKey) bool {
	for _, h := range s.holders([]index.ResourceKey{k})[k] {
		if h.Version != "" || h.Withheld != nil {
			return true
		}
	}
	return false
}

func (s *Server) explainObject(query string, k index.ObjectKey) (*Explanation, error) {
	g := s.gather(k.String())
	readers := s.o.Index.Readers(k)
	if g.snap.Object(k) == nil && len(readers) == 0 {
		return nil, s.notFound(g.snap, query, strings.Trim(k.Namespace+"/"+k.Name, "/"))
	}
	g.object(k)
	owns := k.Kind == kinds.HTTPProxy || k.Kind == kinds.Ingress
	g.follow = func(form string) bool { return owns || form == "cluster" }
	g.others = func(form string) bool { return !owns && (form == "host" || form == "tls") }
	g.derivations(readers...)
	return g.finish(), nil
}
