package simulation

import (
	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// truth is what the API server's state asks for, at every version: the
// translation by an index that sees each event at once, and, for each fact that
// holds now, since when it has done so without a break.
type truth struct {
	world *world
	ix    *index.Index
	now   *serving
	since map[fact]version
}

func newTruth(w *world) *truth {
	t := &truth{world: w, ix: freshIndex(w), now: newServing(), since: map[fact]version{}}
	s := t.ix.Snapshot()
	for _, url := range typeURLs {
		for x := range s.Resources(url) {
			t.put(s, x.ResourceKey)
		}
	}
	t.update()
	return t
}

// freshIndex translates the API server's present state from scratch.
func freshIndex(w *world) *index.Index {
	ix, err := index.New(w.rules)
	if err != nil {
		panic(err)
	}
	changes := []index.Change{index.SourceID{ID: sourceID}}
	for _, k := range allKinds {
		replace := index.Replace{Kind: k, Version: w.api.now}
		for _, o := range w.api.list(k) {
			replace.Objects = append(replace.Objects, copyOf(o))
		}
		changes = append(changes, replace, index.KindStatus{Kind: k, State: index.Observed})
	}
	ix.Apply(index.Cause{}, changes...)
	return ix
}

// follow takes in an event.
func (t *truth) follow(e event) {
	t.world.logf("API server: %s", e)
	c := t.ix.Apply(index.Cause{}, inOrder(e))
	if len(c.Changed) == 0 {
		return
	}
	t.world.logf("  changes %v", c.Changed)
	s := t.ix.Snapshot()
	for _, k := range c.Changed {
		t.put(s, k)
	}
	t.update()
}

func (t *truth) put(s *index.Snapshot, k index.ResourceKey) {
	var x *held
	if row := s.Resource(k); row != nil {
		x = &held{key: k, digest: row.Digest, view: t.world.api.now, parsed: t.world.parser.parse(row)}
	}
	switch k.Type {
	case delta.Cluster:
		t.cluster(s, k.Name, x)
	case delta.Endpoints:
		t.endpoints(k.Name, x)
	case delta.ScopedRoutes:
		if x != nil {
			t.now.scopes[x.parsed.(*parsedScope).key] = x
			return
		}
		for key, old := range t.now.scopes {
			if old.key == k {
				delete(t.now.scopes, key)
			}
		}
	default:
		set(t.table(k.Type), k.Name, x)
	}
}

func (t *truth) table(url string) map[string]*held {
	switch url {
	case delta.Listener:
		return t.now.listeners
	case delta.RouteConfiguration:
		return t.now.routes
	case delta.Secret:
		return t.now.secrets
	}
	panic("simulation: " + url)
}

func set(m map[string]*held, name string, x *held) {
	if x == nil {
		delete(m, name)
		return
	}
	m[name] = x
}

func (t *truth) cluster(s *index.Snapshot, name string, x *held) {
	if x == nil {
		delete(t.now.clusters, name)
		return
	}
	c := servingCluster{cluster: x}
	k := index.ResourceKey{Type: delta.Endpoints, Name: x.parsed.(*parsedCluster).endpoints}
	if row := s.Resource(k); row != nil {
		c.endpoints = &held{key: k, digest: row.Digest, view: t.world.api.now, parsed: t.world.parser.parse(row)}
	}
	t.now.clusters[name] = c
}

func (t *truth) endpoints(name string, x *held) {
	for n, c := range t.now.clusters {
		if c.cluster.parsed.(*parsedCluster).endpoints == name {
			c.endpoints = x
			t.now.clusters[n] = c
		}
	}
}

// update brings the facts up to the present version.
func (t *truth) update() {
	facts := t.now.facts(t.world.gen.hosts)
	for f := range t.since {
		if _, ok := facts[f]; !ok {
			delete(t.since, f)
		}
	}
	for f := range facts {
		if _, ok := t.since[f]; !ok {
			t.since[f] = t.world.api.now
		}
	}
}
