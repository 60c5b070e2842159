package simulation

import (
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/status"

	"github.com/holdfast-xds/holdfast/delta"
)

func rejection(why string) *status.Status { return &status.Status{Code: 13, Message: why} }

// settle lets follow what follows from what was received: listeners that have
// all they need go into service, names are subscribed and unsubscribed, the next
// phase of the start begins.
func (e *envoy) settle() {
	e.begin()
	e.subscribe(delta.Endpoints, e.endpointNames())
	e.warmListeners()
	e.subscribe(delta.Secret, e.secretNames())
	e.subscribe(delta.RouteConfiguration, e.routeNames())
	e.warmListeners()
	if e.gotListeners && !e.ready && !e.listenersWarm() {
		e.ready = true
	}
	if !e.paused() && len(e.backlog) > 0 {
		backlog := e.backlog
		e.backlog = nil
		for _, req := range backlog {
			e.send(req)
		}
	}
}

// begin starts the next phases: listeners are asked for once the first clusters
// are warm, scopes once a listener uses them.
func (e *envoy) begin() {
	if e.gotClusters && !e.started() && !e.warms() {
		e.wildcard(delta.Listener)
		e.ask(e.subs[delta.Listener], nil, nil)
	}
	if e.subs[delta.ScopedRoutes] == nil && e.usesScopes() {
		e.wildcard(delta.ScopedRoutes)
		e.ask(e.subs[delta.ScopedRoutes], nil, nil)
	}
}

// subscribe brings a type's names to the wanted ones.
func (e *envoy) subscribe(url string, want map[string]struct{}) {
	s := e.subs[url]
	if s == nil {
		if len(want) == 0 {
			return
		}
		s = &clientSub{url: url, names: map[string]struct{}{}, versions: map[string]string{}, rejected: map[string]struct{}{}}
		e.subs[url] = s
	}
	var add, drop []string
	for _, name := range sorted(want) {
		if _, ok := s.names[name]; !ok {
			add = append(add, name)
		}
	}
	for _, name := range sorted(s.names) {
		if _, ok := want[name]; !ok {
			drop = append(drop, name)
			delete(s.versions, name)
			delete(s.rejected, name)
			e.discard(url, name)
		}
	}
	s.names = want
	if len(add) > 0 || (len(drop) > 0 && s.asked) {
		e.ask(s, add, drop)
	}
}

func (e *envoy) discard(url, name string) {
	switch url {
	case delta.Endpoints:
		delete(e.endpoints, name)
	case delta.Secret:
		delete(e.secrets, name)
	case delta.RouteConfiguration:
		delete(e.routes, name)
	}
}

func (e *envoy) endpointNames() map[string]struct{} {
	out := map[string]struct{}{}
	for _, c := range e.clusters {
		for _, x := range []*held{c.active, c.warming} {
			if x != nil && x.parsed.(*parsedCluster).eds {
				out[x.parsed.(*parsedCluster).endpoints] = struct{}{}
			}
		}
	}
	return out
}

// chains gives the filter chains of all listeners, in service or warming.
func (e *envoy) chains(visit func(*parsedChain)) {
	for _, l := range e.listeners {
		for _, x := range []*held{l.active, l.warming} {
			if x == nil {
				continue
			}
			chains := x.parsed.(*parsedListener).chains
			for i := range chains {
				visit(&chains[i])
			}
		}
	}
}

func (e *envoy) usesScopes() bool {
	used := false
	e.chains(func(c *parsedChain) { used = used || c.scope != "" })
	return used
}

func (e *envoy) secretNames() map[string]struct{} {
	out := map[string]struct{}{}
	e.chains(func(c *parsedChain) {
		for _, name := range c.secrets {
			out[name] = struct{}{}
		}
	})
	return out
}

func (e *envoy) routeNames() map[string]struct{} {
	out := map[string]struct{}{}
	e.chains(func(c *parsedChain) {
		if c.routes != "" {
			out[c.routes] = struct{}{}
		}
	})
	for _, x := range e.scopes {
		out[x.parsed.(*parsedScope).routes] = struct{}{}
	}
	return out
}

func (e *envoy) warmListeners() {
	e.scopesReady = e.scopesReady || e.scopesComplete()
	for _, l := range e.listeners {
		if l.warming != nil && e.complete(l.warming) {
			l.active, l.warming = l.warming, nil
		}
	}
}

func (e *envoy) listenersWarm() bool {
	for _, l := range e.listeners {
		if l.warming != nil {
			return true
		}
	}
	return false
}

// scopesComplete: the first scopes are there, and what they name.
func (e *envoy) scopesComplete() bool {
	if !e.gotScopes {
		return false
	}
	for _, x := range e.scopes {
		if e.routes[x.parsed.(*parsedScope).routes] == nil {
			return false
		}
	}
	return true
}

// complete: all that a listener waits for has come.
func (e *envoy) complete(l *held) bool {
	for i := range l.parsed.(*parsedListener).chains {
		c := &l.parsed.(*parsedListener).chains[i]
		if c.scope != "" && !e.scopesReady {
			return false
		}
		if c.routes != "" && e.routes[c.routes] == nil {
			return false
		}
		for _, name := range c.secrets {
			if e.secrets[name] == nil {
				return false
			}
		}
	}
	return true
}

// tick gives up waiting: a cluster goes into service with the endpoints that
// were there before, or none; a listener with the secrets that are there.
func (e *envoy) tick() {
	now := e.now()
	for _, name := range sorted(e.clusters) {
		c := e.clusters[name]
		if c.warming == nil {
			continue
		}
		p := c.warming.parsed.(*parsedCluster)
		if p.timeout > 0 && now.Sub(c.since) >= p.timeout {
			c.promote(e.endpoints[p.endpoints])
			e.changed = true
		}
	}
	for _, name := range sorted(e.listeners) {
		l := e.listeners[name]
		if l.warming != nil && now.Sub(l.since) >= defaultFetchTimeout && l.stream == e.conn {
			e.giveUp(name, l)
		}
	}
	e.settle()
}

// deadline is when tick has something to give up; zero for never.
func (e *envoy) deadline() time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, c := range e.clusters {
		if c.warming != nil && c.warming.parsed.(*parsedCluster).timeout > 0 {
			sooner(c.since.Add(c.warming.parsed.(*parsedCluster).timeout))
		}
	}
	for _, l := range e.listeners {
		if due := l.since.Add(defaultFetchTimeout); l.warming != nil && e.now().Before(due) {
			sooner(due)
		}
	}
	return next
}

func (e *envoy) giveUp(name string, l *envoyListener) {
	for i := range l.warming.parsed.(*parsedListener).chains {
		for _, secret := range l.warming.parsed.(*parsedListener).chains[i].secrets {
			if e.secrets[secret] == nil {
				e.gaveUp = append(e.gaveUp, "listener "+name+" waited too long for secret "+secret)
			}
		}
	}
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
