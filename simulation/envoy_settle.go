package simulation

import (
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
