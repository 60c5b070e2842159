package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/index"
)

// serving is a configuration in service: an Envoy's, or the one that the API
// server's state asks for. It is what requests can tell.
type serving struct {
	listeners map[string]*held
	scopes    map[string]*held // by key
	routes    map[string]*held
	secrets   map[string]*held
	clusters  map[string]servingCluster
}

type servingCluster struct{ cluster, endpoints *held }

func newServing() *serving {
	return &serving{
		listeners: map[string]*held{}, scopes: map[string]*held{}, routes: map[string]*held{},
		secrets: map[string]*held{}, clusters: map[string]servingCluster{},
	}
}

// fact is something that a client of an Envoy could rely upon: a request that
// reaches an address, or a handshake that is given a certificate. It names the
// object that says so: when another one takes over, the two kinds' watches may
// tell of it in either order, and no replica can know better.
type fact struct {
	tls     bool
	host    string
	path    string       // of a request
	address string       // that it reaches
	cert    index.Digest // of a handshake
	owner   string       // Kind/namespace/name of the route
}

// facts gives all that holds, with the version of the view that each was made
// from: the oldest of those of the resources involved.
func (s *serving) facts(hosts []string) map[fact]version {
	out := map[fact]version{}
	for _, name := range sorted(s.listeners) {
		l := s.listeners[name]
		for _, host := range hosts {
			s.factsOf(l, probe(host), out)
		}
	}
	return out
}

// mainOwner is the object that owns a host's root path, which tells whose
// certificate it is.
func mainOwner(rc *held, host string) string {
	if rc == nil {
		return ""
	}
	if r := match(rc.parsed.(*parsedRoutes), host, "/"); r != nil {
		return owner(r.name)
	}
	return ""
}

// probe gives a host that a wildcard covers.
func probe(host string) string { return strings.Replace(host, "*", "any", 1) }

func (s *serving) factsOf(l *held, host string, out map[fact]version) {
	chain := choose(l.parsed.(*parsedListener).chains, host)
	if chain == nil {
		return
	}
	view := l.view
	rc, routesView := s.routesOf(chain, host, view)
	for _, name := range chain.secrets {
		secret := s.secrets[name]
		if secret == nil {
			return
		}
		view = min(view, secret.view)
		out[fact{tls: true, host: host, cert: secret.digest, owner: mainOwner(rc, host)}] = view
	}
	if rc == nil {
		return
	}
	view = min(view, routesView, rc.view)
	for _, path := range paths {
		s.reached(rc, fact{tls: chain.tls, host: host, path: path}, view, out)
	}
}

// choose gives the filter chain that a connection for the host gets.
func choose(chains []parsedChain, host string) *parsedChain {
	var best *parsedChain
	longest := -1
	for i := range chains {
		c := &chains[i]
		if len(c.names) == 0 && longest < 0 {
			best, longest = c, 0
		}
		for _, n := range c.names {
			if n == host || (covers(n, host) && len(n) > longest && longest < exactName) {
				best, longest = c, len(n)
				if n == host {
					longest = exactName
				}
			}
		}
	}
	return best
}

const exactName = 1 << 20

// covers: a wildcard name or domain takes the host.
func covers(wildcard, host string) bool {
	return strings.HasPrefix(wildcard, "*") && len(host) > len(wildcard) && strings.HasSuffix(host, wildcard[1:])
}

func (s *serving) routesOf(c *parsedChain, host string, view version) (*held, version) {
	if c.scope == "" {
		return s.routes[c.routes], view
	}
	for _, key := range []string{c.scope + host, c.scope + "*"} {
		scope := s.scopes[key]
		if scope == nil {
			continue
		}
		if rc := s.routes[scope.parsed.(*parsedScope).routes]; rc != nil {
			return rc, min(view, scope.view)
		}
	}
	return nil, view
}

func (s *serving) reached(rc *held, f fact, view version, out map[fact]version) {
	r := match(rc.parsed.(*parsedRoutes), f.host, f.path)
	if r == nil {
		return
	}
	for _, name := range r.clusters {
		c, ok := s.clusters[name]
		if !ok || c.endpoints == nil {
			continue
		}
		v := min(view, c.cluster.view, c.endpoints.view)
		for _, a := range c.endpoints.parsed.(*parsedEndpoints).addresses {
			f.address, f.owner = a, owner(r.name)
			out[f] = max(out[f], v)
		}
	}
}

// owner cuts the field from a route's name.
func owner(route string) string {
	for i, slashes := 0, 0; i < len(route); i++ {
		if route[i] == '/' {
			if slashes++; slashes == 3 {
				return route[:i]
			}
		}
	}
	return route
}

// match gives the route that takes a request.
func match(rc *parsedRoutes, host, path string) *parsedRoute {
	h := hostOf(rc, host)
	if h == nil {
		return nil
	}
	for i := range h.routes {
		if h.routes[i].matches(path) {
			return &h.routes[i]
		}
	}
	return nil
}

func hostOf(rc *parsedRoutes, host string) *parsedHost {
	var best *parsedHost
	longest := -1
	for i := range rc.hosts {
		for _, d := range rc.hosts[i].domains {
			d, _, _ = strings.Cut(d, ":")
			switch {
			case d == host:
				return &rc.hosts[i]
			case d == "*" && longest < 0, covers(d, host) && len(d) > longest:
				best, longest = &rc.hosts[i], len(d)
			}
		}
	}
	return best
}

// answer gives the route that takes a fact's request now, and where it is from.
func (s *serving) answer(f fact) (rc *held, r *parsedRoute) {
	if f.path == "" {
		f.path = "/" // of a handshake
	}
	for _, name := range sorted(s.listeners) {
		chain := choose(s.listeners[name].parsed.(*parsedListener).chains, f.host)
		if chain == nil || chain.tls != f.tls {
			continue
		}
		if rc, _ = s.routesOf(chain, f.host, 0); rc == nil {
			return nil, nil
		}
		return rc, match(rc.parsed.(*parsedRoutes), f.host, f.path)
	}
	return nil, nil
}

// excused: what answers now came of two watches that are apart. Another object's
// route takes the request, which a Service that the one watch has not yet seen go
// keeps alive, say. Or there is nothing, since the one watch has seen an HTTPProxy
// come whose Secret the other one has not: the kind of the Secret is complete, if
// only up to a version before that of the HTTPProxy, and that is all that the rule
// asks for.
func (s *serving) excused(f fact, apart bool) bool {
	rc, r := s.answer(f)
	switch {
	case r == nil && f.tls:
		return apart || slices.ContainsFunc(slices.Collect(maps.Values(s.listeners)), (*held).skewed)
	case r == nil || len(r.clusters) == 0:
		return apart
	}
	return owner(r.name) != f.owner && (apart || rc.skewed())
}

// explain says in words what becomes of a fact's request.
func (s *serving) explain(f fact) string {
	rc, r := s.answer(f)
	if r == nil {
		return "no route"
	}
	return fmt.Sprintf("route %s of %s to %v, status %d", r.name, rc.key.Name, r.clusters, r.status)
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
