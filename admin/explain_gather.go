package admin

import (
	"cmp"
	"slices"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// Limits of one explanation: a shared Service may be behind thousands of hosts.
const (
	maxObjects     = 60
	maxDerivations = 40
	maxResources   = 60
	maxExplained   = 20 // changes
	maxRefs        = 50 // of one resource
)

// gathering is an explanation in the making.
type gathering struct {
	s    *Server
	snap *index.Snapshot
	out  Explanation

	derived map[index.DerivationID]bool
	objects map[index.ObjectKey]bool
	made    map[index.ResourceKey]bool
	keys    []index.ResourceKey
	// others says of which forms of derivations the other things that they read are
	// left out: a Service is read by hosts that have Services beside it.
	others func(form string) bool
	// follow says from which forms of derivations to go on to what they demand.
	follow func(form string) bool
}

func (s *Server) gather(subject string) *gathering {
	snap := s.o.Index.Snapshot()
	return &gathering{
		s: s, snap: snap, out: Explanation{Subject: subject, Revision: snap.Revision()},
		derived: map[index.DerivationID]bool{}, objects: map[index.ObjectKey]bool{}, made: map[index.ResourceKey]bool{},
		follow: func(string) bool { return true }, others: func(string) bool { return false },
	}
}

// derivations takes in derivations and, as far as follow goes, those that they
// demand.
func (g *gathering) derivations(ids ...index.DerivationID) {
	for _, id := range ids {
		if g.derived[id] {
			continue
		}
		g.derived[id] = true
		if len(g.out.Derivations) >= maxDerivations {
			g.out.OmittedDerivations++
			continue
		}
		d, ok := g.s.o.Index.Derived(id)
		if !ok {
			continue
		}
		g.out.Derivations = append(g.out.Derivations, d)
		form, _ := translate.Subject(id)
		if !g.others(form) {
			g.reads(d.Reads)
		}
		for _, k := range d.Makes {
			g.resource(k)
		}
		for _, p := range d.Problems {
			if !slices.Contains(g.out.Problems, p) {
				g.out.Problems = append(g.out.Problems, p)
			}
		}
		if g.follow(form) {
			g.derivations(d.Demands...)
		}
	}
}

func (g *gathering) reads(reads []index.Read) {
	for _, r := range reads {
		if r.Object != nil {
			g.object(*r.Object)
		}
		for _, k := range r.Objects {
			g.object(k)
		}
	}
}

func (g *gathering) object(k index.ObjectKey) {
	if g.objects[k] {
		return
	}
	g.objects[k] = true
	if len(g.out.Objects) >= maxObjects {
		g.out.OmittedObjects++
		return
	}
	g.out.Objects = append(g.out.Objects, viewObject(g.snap, k))
}

func viewObject(snap *index.Snapshot, k index.ObjectKey) ObjectView {
	v := ObjectView{ObjectKey: k, State: objectFound}
	o, row := snap.Object(k), snap.Kind(k.Kind)
	switch {
	case o != nil && o.Version > 0:
		v.Version = o.Version.String()
	case o != nil:
	case row != nil && row.Complete():
		v.State = objectMissing
	default:
		v.State = objectUnknown
	}
	return v
}

func (g *gathering) resource(k index.ResourceKey) {
	if g.made[k] {
		return
	}
	g.made[k] = true
	if len(g.keys) >= maxResources {
		g.out.OmittedResources++
		return
	}
	g.keys = append(g.keys, k)
}

// finish asks the Envoys, and draws the conclusions.
func (g *gathering) finish() *Explanation {
	holders := g.s.holders(g.keys)
	for _, k := range g.keys {
		g.out.Resources = append(g.out.Resources, g.s.viewResource(g.snap, k, holders[k]))
	}
	slices.SortStableFunc(g.out.Objects, func(a, b ObjectView) int {
		return cmp.Or(cmp.Compare(kindOrder(a.Kind), kindOrder(b.Kind)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	g.out.Changes = g.s.changes.of(g.made, maxExplained)
	for i := range g.out.Changes {
		g.out.Changes[i].Kept = g.s.traceKept(g.out.Changes[i].Trace)
	}
	g.conclude()
	g.out.fill()
	return &g.out
}

// fill: a list that is empty is [] in JSON, not null.
func (e *Explanation) fill() {
	e.Findings = orEmpty(e.Findings)
	e.Objects = orEmpty(e.Objects)
	e.Derivations = orEmpty(e.Derivations)
	e.Resources = orEmpty(e.Resources)
	e.Problems = orEmpty(e.Problems)
	e.Changes = orEmpty(e.Changes)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// kindOrder gives a kind's place in the table of kinds: what people write comes first.
func kindOrder(k index.Kind) int {
	return slices.IndexFunc(kinds.All, func(w kinds.Watched) bool { return w.Kind == k })
}
