package index

import (
	"fmt"
	"slices"
)

// derivation is the row of a derivation that has run: what it read and what it
// left. Rows are immutable.
type derivation struct {
	id       DerivationID
	reads    []string // sorted
	makes    []ResourceKey
	facts    []Fact
	demands  []demand
	problems []Problem

	// Only while it runs.
	drafts   []draft
	lastProv Provenance
}

type demand struct {
	id    DerivationID
	param any
	basis Provenance
}

type draft struct {
	Draft
	prov Provenance
}

// run runs what is awake, lowest rank first, until nothing is; then it disposes
// of derivations that nobody demands any more, which may wake others.
func (t *tx) run() {
	for {
		for rank := 0; rank < len(t.queue); {
			if len(t.queue[rank]) == 0 {
				rank++
				continue
			}
			id := t.queue[rank][0]
			t.queue[rank] = t.queue[rank][1:]
			delete(t.queued, id)
			t.runOne(id)
			rank = 0
		}
		if len(t.released) == 0 {
			return
		}
		released := t.released
		t.released = nil
		for _, id := range released {
			if t.ix.demanded[id] == nil {
				t.dispose(id)
			}
		}
	}
}

func (t *tx) runOne(id DerivationID) {
	old := t.derivation(id)
	r := &Reader{tx: t, id: id, old: old, reads: map[string]struct{}{}}
	var param any
	if d := t.ix.demanded[id]; d != nil {
		param = d.param
		r.prov = t.wanted(d.basis)
	}
	t.ix.rules.Derive(id, param, r)
	t.ran = append(t.ran, id)
	t.settle(id, old, r)
}

// wanted turns the first demander's basis into the removal needs of what is
// demanded: at the versions given here the resource was wanted.
func (t *tx) wanted(basis Provenance) Provenance {
	var p Provenance
	for _, b := range basis {
		b.Need = NeedRemoval
		if row := t.kind(b.Kind); row != nil && row.Frontier.Observed {
			b.Known, b.Version = true, max(b.Version, row.Events)
		}
		p = p.merge(b)
	}
	return p
}

// settle replaces what the derivation had left by what it left now.
func (t *tx) settle(id DerivationID, old *derivation, r *Reader) {
	now := r.out
	now.id = id
	now.reads = sortedKeys(r.reads)
	t.settleReads(id, old, &now)
	t.settleResources(id, old, &now, r.prov)
	t.settleFacts(old, &now)
	t.settleDemands(id, old, &now)
	t.settleProblems(old, &now)
	now.drafts, now.lastProv = nil, nil
	if old == nil && now.idle() && !t.kept(id) {
		t.forgetReads(id, now.reads)
		return
	}
	if now.idle() && !t.kept(id) {
		t.forgetReads(id, now.reads)
		t.delete(tableDerivations, old)
		return
	}
	t.put(tableDerivations, &now)
}

// idle: the derivation leaves nothing, so a subject's derivation is forgotten.
func (d *derivation) idle() bool {
	return len(d.makes) == 0 && len(d.facts) == 0 && len(d.demands) == 0 && len(d.problems) == 0
}

func (t *tx) kept(id DerivationID) bool {
	_, root := t.ix.roots[id]
	return root || t.ix.demanded[id] != nil
}

func (t *tx) dispose(id DerivationID) {
	old := t.derivation(id)
	if old == nil {
		return
	}
	r := &Reader{tx: t, id: id, old: old}
	none := derivation{id: id}
	t.settleReads(id, old, &none)
	t.settleResources(id, old, &none, r.prov)
	t.settleFacts(old, &none)
	t.settleDemands(id, old, &none)
	t.delete(tableDerivations, old)
	if _, awake := t.queued[id]; awake {
		delete(t.queued, id)
		rank := t.ix.rules.Rank(id)
		t.queue[rank] = slices.DeleteFunc(t.queue[rank], func(x DerivationID) bool { return x == id })
	}
}

func (t *tx) settleReads(id DerivationID, old, now *derivation) {
	if old != nil && slices.Equal(old.reads, now.reads) {
		now.reads = old.reads
		return
	}
	if old != nil {
		t.forgetReads(id, old.reads)
	}
	for _, k := range now.reads {
		set := t.ix.readers[k]
		if set == nil {
			set = map[DerivationID]struct{}{}
			t.ix.readers[k] = set
		}
		set[id] = struct{}{}
	}
}

func (t *tx) forgetReads(id DerivationID, reads []string) {
	for _, k := range reads {
		set := t.ix.readers[k]
		delete(set, id)
		if len(set) == 0 {
			delete(t.ix.readers, k)
		}
	}
}

// settleResources stores the drafts and buries what is no longer made. prov is
// the provenance of the run as a whole: that of "no longer made".
func (t *tx) settleResources(id DerivationID, old, now *derivation, prov Provenance) {
	for _, d := range now.drafts {
		k := ResourceKey{d.Type, d.Name}
		if slices.Contains(now.makes, k) {
			panic(fmt.Sprintf("index: derivation %s makes %s twice", id, k))
		}
		now.makes = append(now.makes, k)
		t.store(id, k, d)
	}
	if old == nil {
		return
	}
	for _, k := range old.makes {
		if !slices.Contains(now.makes, k) {
			t.bury(k, prov)
		}
	}
}

func (t *tx) store(id DerivationID, k ResourceKey, d draft) {
	old := t.resource(k)
	if old != nil && old.Maker != id {
		panic(fmt.Sprintf("index: derivations %s and %s both make %s", old.Maker, id, k))
	}
	row := &Resource{
		ResourceKey: k, Body: d.Body, Digest: DigestOf(d.Body), Provenance: d.prov, Refs: d.Refs,
		ClosedWorld: d.ClosedWorld, Sources: d.Sources, Maker: id, Modified: t.revision,
	}
	if old == nil {
		row.Ordinal = t.unbury(k)
		t.put(tableResources, row)
		t.changed[k] = struct{}{}
		return
	}
	row.Ordinal = old.Ordinal
	same := old.Digest == row.Digest && old.sameNeeds(row.Provenance)
	if same {
		row.Body, row.Modified = old.Body, old.Modified
		if equalProvenance(old.Provenance, row.Provenance) && slices.Equal(old.Refs, row.Refs) && slices.Equal(old.Sources, row.Sources) {
			return
		}
	} else {
		t.changed[k] = struct{}{}
	}
	t.put(tableResources, row)
}

func (t *tx) bury(k ResourceKey, prov Provenance) {
	last := t.resource(k)
	if last == nil {
		return
	}
	all := append(Provenance(nil), last.Provenance...)
	grave := &Tombstone{Last: last, Provenance: all.mergeAll(prov), Removed: t.revision}
	t.delete(tableResources, last)
	t.put(tableTombstones, grave)
	t.changed[k] = struct{}{}
	o := t.ix.ordinals[k.Type]
	o.graves = append(o.graves, grave)
}

// unbury removes a resource's tombstone, if there is one, and gives its ordinal.
func (t *tx) unbury(k ResourceKey) uint32 {
	if grave := t.tombstone(k); grave != nil {
		t.delete(tableTombstones, grave)
		return grave.Last.Ordinal
	}
	return t.ix.ordinals[k.Type].take()
}

// sweep deletes the tombstones that every reader has passed.
func (t *tx) sweep(slowest Revision) {
	for _, o := range t.ix.ordinals {
		n := 0
		for _, grave := range o.graves {
			if grave.Removed > slowest {
				break
			}
			n++
			if t.tombstone(grave.Last.ResourceKey) == grave {
				t.delete(tableTombstones, grave)
				o.free = append(o.free, grave.Last.Ordinal)
			}
		}
		o.graves = o.graves[n:]
	}
}

// ordinals hands out the small numbers of one resource type. Owned by the writer.
type ordinals struct {
	next   uint32
	free   []uint32
	graves []*Tombstone // oldest first; some may have been unburied
}

func (o *ordinals) take() uint32 {
	if n := len(o.free); n > 0 {
		x := o.free[n-1]
		o.free = o.free[:n-1]
		return x
	}
	o.next++
	return o.next - 1
}

func (t *tx) settleFacts(old, now *derivation) {
	for i := range now.facts {
		f := &now.facts[i]
		if prev := t.fact(f.Key); prev != nil && prev.Digest == f.Digest && prev.Provenance.sameNeeds(f.Provenance) {
			now.facts[i] = *prev
			continue
		}
		t.put(tableFacts, f)
		t.touchFact(f.Key)
	}
	if old == nil {
		return
	}
	for i := range old.facts {
		key := old.facts[i].Key
		if slices.ContainsFunc(now.facts, func(f Fact) bool { return f.Key == key }) {
			continue
		}
		t.delete(tableFacts, &old.facts[i])
		t.touchFact(key)
	}
}

func (t *tx) touchFact(key string) {
	t.touch(readFact(key))
	for i := range len(key) {
		if key[i] == '/' {
			t.touch(readForm(key[:i]))
			return
		}
	}
}

func (t *tx) settleDemands(id DerivationID, old, now *derivation) {
	for _, d := range now.demands {
		set := t.ix.demanded[d.id]
		if set == nil {
			set = &demanders{param: d.param, basis: d.basis, by: map[DerivationID]struct{}{}}
			t.ix.demanded[d.id] = set
			t.wake(d.id)
		}
		set.by[id] = struct{}{}
	}
	if old == nil {
		return
	}
	for _, d := range old.demands {
		if slices.ContainsFunc(now.demands, func(x demand) bool { return x.id == d.id }) {
			continue
		}
		set := t.ix.demanded[d.id]
		delete(set.by, id)
		if len(set.by) == 0 {
			delete(t.ix.demanded, d.id)
			t.released = append(t.released, d.id)
		}
	}
}

func (t *tx) settleProblems(old, now *derivation) {
	now.problems = slices.DeleteFunc(now.problems, func(p Problem) bool {
		return slices.ContainsFunc(p.missing, func(k Kind) bool { row := t.kind(k); return row == nil || !row.Complete() })
	})
	for i := range now.problems {
		now.problems[i].missing = nil
	}
	var before []Problem
	if old != nil {
		before = old.problems
	}
	t.problems = appendNew(t.problems, before, now.problems)
}

func sortedKeys(m map[string]struct{}) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
