package simulation

import (
	"time"
)

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
