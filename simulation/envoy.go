package simulation

import (
	"fmt"
	"slices"
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

// receive takes in a response and answers it.
func (e *envoy) receive(r *response) {
	e.changed = true
	s := e.subs[r.url]
	if s == nil {
		return
	}
	ack := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.url, ResponseNonce: r.nonce}
	if why := e.apply(s, r); why != "" {
		ack.ErrorDetail = rejection(why)
		for _, x := range r.resources {
			s.rejected[x.key.Name] = struct{}{}
		}
		for _, name := range r.removed {
			s.rejected[name] = struct{}{}
		}
	} else {
		s.accept(r)
	}
	if e.coin(r.nonce, 1) {
		e.send(ack)
		e.settle()
		return
	}
	e.settle()
	e.send(ack)
}

func (s *clientSub) accept(r *response) {
	for _, x := range r.resources {
		if s.wants(x.key.Name) {
			s.versions[x.key.Name] = x.token
			delete(s.rejected, x.key.Name)
		}
	}
	for _, name := range r.removed {
		delete(s.versions, name)
		delete(s.rejected, name)
	}
}

func (s *clientSub) wants(name string) bool {
	if s.names == nil {
		return true
	}
	_, ok := s.names[name]
	return ok
}

// coin is a choice that a real Envoy makes by chance.
func (e *envoy) coin(nonce string, purpose uint64) bool {
	return randomOf(e.salt, uint64(index.DigestOf([]byte(nonce))), purpose).oneIn(2)
}

// apply takes over what a response brings and says why it rejects it, if it does.
// The valid siblings of what is rejected are applied or not, as it happens.
func (e *envoy) apply(s *clientSub, r *response) (why string) {
	var good []*held
	for _, x := range r.resources {
		if !s.wants(x.key.Name) {
			continue
		}
		if rejects(x) {
			why = fmt.Sprintf("rejected %s", x.key.Name)
			continue
		}
		good = append(good, x)
	}
	if r.url == delta.ScopedRoutes {
		if conflict := e.scopeConflict(good, r.removed); conflict != "" {
			return conflict
		}
	}
	if why != "" && e.coin(r.nonce, 2) {
		return why
	}
	for _, x := range good {
		e.take(x)
	}
	e.gone(r)
	return why
}

// rejects: what Envoy's validation refuses.
func rejects(x *held) bool {
	switch p := x.parsed.(type) {
	case *parsedCluster:
		return p.connections == rejectedConnections
	case *parsedRoutes:
		return p.rejected
	}
	return false
}

func (e *envoy) take(x *held) {
	name := x.key.Name
	switch x.key.Type {
	case delta.Cluster:
		e.gotClusters = true
		e.takeCluster(x)
	case delta.Endpoints:
		e.takeEndpoints(x)
	case delta.Listener:
		e.takeListener(x)
	case delta.ScopedRoutes:
		e.scopes[name] = x
	case delta.RouteConfiguration:
		e.routes[name] = x
	case delta.Secret:
		e.secrets[name] = x
	}
}

// takeCluster: identical bytes are skipped; an EDS cluster warms until endpoints
// come after it.
func (e *envoy) takeCluster(x *held) {
	c := e.clusters[x.key.Name]
	if c == nil {
		c = &envoyCluster{}
		e.clusters[x.key.Name] = c
	}
	newest := c.warming
	if newest == nil {
		newest = c.active
	}
	if newest != nil && newest.digest == x.digest {
		newest.view = max(newest.view, x.view)
		return
	}
	if !x.parsed.(*parsedCluster).eds {
		c.active, c.warming = x, nil
		return
	}
	c.warming, c.since, c.stream = x, e.now(), e.conn
}

func (e *envoy) takeEndpoints(x *held) {
	e.endpoints[x.key.Name] = x
	for _, c := range e.clusters {
		if c.active != nil && c.active.parsed.(*parsedCluster).endpoints == x.key.Name {
			c.endpoints = x
		}
		if c.warming != nil && c.warming.parsed.(*parsedCluster).endpoints == x.key.Name {
			c.promote(x)
		}
	}
}

func (c *envoyCluster) promote(endpoints *held) {
	c.active, c.endpoints, c.warming = c.warming, endpoints, nil
}

func (e *envoy) takeListener(x *held) {
	l := e.listeners[x.key.Name]
	if l == nil {
		l = &envoyListener{}
		e.listeners[x.key.Name] = l
	}
	newest := l.warming
	if newest == nil {
		newest = l.active
	}
	if newest != nil && newest.digest == x.digest {
		newest.view = max(newest.view, x.view)
		return
	}
	l.warming, l.since, l.stream = x, e.now(), e.conn
}

// gone applies removals, where Envoy honours them. Of endpoints it only takes the
// word that none will come: a warming cluster goes into service without.
func (e *envoy) gone(r *response) {
	switch r.url {
	case delta.Endpoints:
		for _, c := range e.clusters {
			if c.warming != nil && slices.Contains(r.removed, c.warming.parsed.(*parsedCluster).endpoints) {
				c.promote(nil)
			}
		}
	case delta.Cluster:
		e.gotClusters = true
		for _, name := range r.removed {
			delete(e.clusters, name)
		}
	case delta.Listener:
		e.gotListeners = true
		for _, name := range r.removed {
			delete(e.listeners, name)
		}
	case delta.ScopedRoutes:
		e.gotScopes = true
		for _, name := range r.removed {
			delete(e.scopes, name)
		}
	}
}

// scopeConflict: a key that occurs twice rejects the whole response.
func (e *envoy) scopeConflict(added []*held, removed []string) string {
	after := map[string]*held{}
	for name, x := range e.scopes {
		if !slices.Contains(removed, name) {
			after[name] = x
		}
	}
	for _, x := range added {
		after[x.key.Name] = x
	}
	keys := map[string]string{}
	for _, name := range sorted(after) {
		k := after[name].parsed.(*parsedScope).key
		if first, taken := keys[k]; taken {
			return "scope key conflict found, first scope is " + first + ", second " + name
		}
		keys[k] = name
	}
	return ""
}
