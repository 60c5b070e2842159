package simulation

import (
	"slices"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// envoy is a model of Envoy as a client of a delta ADS server: what was measured
// on 1.40 (order of requests, warming, held back ACKs, removals that are ignored,
// partial application of rejected responses).
//
//	states    per type: not subscribed, subscribed; per cluster and listener:
//	          warming, in service; as a whole: starting, started, ready
//	inputs    connect, disconnect, receive, tick
//	outputs   requests, into the connection's queue
type envoy struct {
	name string
	salt uint64
	now  func() time.Time
	conn *conn // nil while disconnected

	// What its xDS client knows.
	subs map[string]*clientSub
	// backlog: CDS requests that wait until no cluster warms.
	backlog []*discoveryv3.DeltaDiscoveryRequest

	// What it holds.
	clusters  map[string]*envoyCluster
	endpoints map[string]*held
	listeners map[string]*envoyListener
	scopes    map[string]*held // by name
	routes    map[string]*held
	secrets   map[string]*held

	gotClusters, gotListeners, gotScopes bool
	scopesReady                          bool
	ready                                bool
	wasReady                             bool // known to the checks

	changed bool // what is in service may have
	apart   bool // the last response was; see response
	// gaveUp: what warmed too long and went into service as it was.
	gaveUp []string
}

// clientSub is the client's side of a subscription.
type clientSub struct {
	url      string
	names    map[string]struct{} // nil for a wildcard
	versions map[string]string   // what initial_resource_versions will say
	asked    bool                // on this stream
	rejected map[string]struct{} // names in responses that it rejected
}

type envoyCluster struct {
	active    *held
	endpoints *held // of the active one
	warming   *held
	since     time.Time
	stream    *conn // on which warming began
}

type envoyListener struct {
	active, warming *held
	since           time.Time
	stream          *conn // on which warming began
}

// requestOrder is the order in which a stream's first requests go out.
var requestOrder = []string{delta.Cluster, delta.Endpoints, delta.Listener, delta.Secret, delta.ScopedRoutes, delta.RouteConfiguration}

func newEnvoy(name string, salt uint64, now func() time.Time) *envoy {
	e := &envoy{
		name: name, salt: salt, now: now, subs: map[string]*clientSub{},
		clusters: map[string]*envoyCluster{}, endpoints: map[string]*held{}, listeners: map[string]*envoyListener{},
		scopes: map[string]*held{}, routes: map[string]*held{}, secrets: map[string]*held{}, changed: true,
	}
	e.wildcard(delta.Cluster)
	return e
}

func (e *envoy) wildcard(url string) {
	if e.subs[url] == nil {
		e.subs[url] = &clientSub{url: url, versions: map[string]string{}, rejected: map[string]struct{}{}}
	}
}

// connect opens the stream: one request for each type, with what is held.
func (e *envoy) connect(c *conn) {
	e.conn, e.backlog = c, nil
	for _, s := range e.subs {
		s.asked = false
	}
	for _, url := range requestOrder {
		if s := e.subs[url]; s != nil && (s.names == nil || len(s.names) > 0) {
			e.ask(s, sorted(s.names), nil)
		}
	}
}

func (e *envoy) disconnect() { e.conn, e.backlog = nil, nil }

// ask sends a subscription request. The first of a stream carries what is held.
func (e *envoy) ask(s *clientSub, add, drop []string) {
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: s.url, ResourceNamesSubscribe: add, ResourceNamesUnsubscribe: drop}
	if !s.asked {
		s.asked = true
		req.InitialResourceVersions = map[string]string{}
		for name, v := range s.versions {
			req.InitialResourceVersions[name] = v
		}
		req.ResourceNamesUnsubscribe = nil
	} else if e.conn != nil {
		for _, name := range append(slices.Clone(add), drop...) {
			delete(e.conn.had, index.ResourceKey{Type: s.url, Name: name})
		}
	}
	e.send(req)
}

// declared gives what the first requests of a stream say is held.
func (e *envoy) declared() map[index.ResourceKey]index.Digest {
	has, out := e.holdings(), map[index.ResourceKey]index.Digest{}
	for k, x := range has {
		if x != nil && e.subs[k.Type] != nil && e.subs[k.Type].versions[k.Name] == x.token {
			out[k] = x.digest
		}
	}
	return out
}

func (e *envoy) send(req *discoveryv3.DeltaDiscoveryRequest) {
	switch {
	case e.conn == nil:
	case req.GetTypeUrl() == delta.Cluster && e.paused():
		e.backlog = append(e.backlog, req)
	default:
		e.conn.toServer = append(e.conn.toServer, req)
	}
}

// paused: once Envoy has started, CDS requests wait while any cluster warms.
func (e *envoy) paused() bool { return e.started() && e.warms() }

func (e *envoy) started() bool { return e.subs[delta.Listener] != nil }

func (e *envoy) warms() bool {
	for _, c := range e.clusters {
		if c.warming != nil {
			return true
		}
	}
	return false
}

func (s *clientSub) wants(name string) bool {
	if s.names == nil {
		return true
	}
	_, ok := s.names[name]
	return ok
}

// inService gives what requests can tell.
func (e *envoy) inService() *serving {
	s := newServing()
	if !e.ready {
		return s
	}
	for name, l := range e.listeners {
		if l.active != nil {
			s.listeners[name] = l.active
		}
	}
	for _, x := range e.scopes {
		s.scopes[x.parsed.(*parsedScope).key] = x
	}
	s.routes, s.secrets = e.routes, e.secrets
	for name, c := range e.clusters {
		if c.active != nil {
			s.clusters[name] = servingCluster{c.active, c.endpoints}
		}
	}
	return s
}

// estrange makes all that is held another cluster's: tokens with another source
// and no vector, made from a view that is at best the given one.
func (e *envoy) estrange(view version) {
	for _, s := range e.subs {
		for name, token := range s.versions {
			parts := strings.SplitN(token, ".", 4)
			s.versions[name] = strings.Join([]string{parts[0], parts[1], "another", ""}, ".")
		}
	}
	older := func(x *held) {
		if x != nil {
			x.view = min(x.view, view)
			x.token = "foreign"
		}
	}
	for _, c := range e.clusters {
		older(c.active)
		older(c.warming)
		older(c.endpoints)
	}
	for _, l := range e.listeners {
		older(l.active)
		older(l.warming)
	}
	for _, m := range []map[string]*held{e.endpoints, e.scopes, e.routes, e.secrets} {
		for _, x := range m {
			older(x)
		}
	}
}
