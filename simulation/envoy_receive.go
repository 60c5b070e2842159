package simulation

import (
	"fmt"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

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
