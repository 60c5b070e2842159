package index

import (
	"slices"
)

// derivation is what a derivation that has run read and left. It is immutable.
type derivation struct {
	id       DerivationID
	reads    []*read // in the order of reading
	makes    []ResourceKey
	facts    []Fact
	demands  []DerivationID
	problems []Problem
	restsOn  Provenance // all that it read
	found    bool       // it read at least one object or fact
	kept     bool       // a problem is kept back: a kind is not complete
	demanded bool       // it ran because others demanded it
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
			t.runOne(t.pop(rank))
			rank = 0
		}
		if len(t.released) == 0 {
			return
		}
		released := t.released
		t.released, t.releasing = nil, nil
		for _, id := range released {
			if t.ix.demanded[id] == nil {
				t.dispose(id)
			}
		}
	}
}

// pop takes the next derivation of a rank. They run in the order of their ids,
// so that the same changes have the same effects, down to who demanded first.
func (t *tx) pop(rank int) DerivationID {
	if t.unsorted[rank] {
		slices.Sort(t.queue[rank])
		t.unsorted[rank] = false
	}
	id := t.queue[rank][0]
	t.queue[rank] = t.queue[rank][1:]
	delete(t.queued, id)
	return id
}

func (t *tx) runOne(id DerivationID) {
	if _, again := t.before[id]; !again {
		t.before[id] = t.derivation(id).said()
	}
	old := t.derivation(id)
	t.ix.runs++
	r := &Reader{tx: t, id: id, old: old, run: t.ix.runs}
	var param any
	switch d := t.ix.demanded[id]; {
	case d != nil:
		param = d.param
		r.prov = t.wanted(d.basis)
	case old != nil && old.demanded, old == nil && t.isReleased(id):
		return // lost its last demander in this transaction: it is disposed of soon
	}
	t.ix.rules.Derive(id, param, r)
	t.ran = append(t.ran, id)
	t.settle(id, old, r)
}

// wanted turns the demanders' basis into the removal needs of what is demanded: at
// the versions given here the resource was wanted.
func (t *tx) wanted(basis Provenance) Provenance {
	var p Provenance
	for _, b := range basis {
		b.Need, b.Read = NeedRemoval, false
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
	now.demanded = t.ix.demanded[id] != nil
	now.reads = slices.Clone(r.reads) // as long as it is, and no longer
	now.restsOn = r.Provenance()
	t.settleReads(id, old.read(), now.reads, r.run)
	t.settleResources(id, old, &now, r)
	t.settleFacts(old, &now)
	t.settleDemands(id, old, &now, r.demands)
	if now.idle() && !t.kept(id) {
		t.forgetReads(id, now.reads)
		t.keepDerivation(old, nil)
		return
	}
	t.keepDerivation(old, &now)
}

func (d *derivation) read() []*read {
	if d == nil {
		return nil
	}
	return d.reads
}

// keepDerivation replaces a derivation by its newest run; either may be nil. Those
// that have something to say to people are in a table, for snapshots.
func (t *tx) keepDerivation(old, now *derivation) {
	t.dirty = true
	switch {
	case now != nil:
		t.ix.derivations[now.id] = now
	case old != nil:
		delete(t.ix.derivations, old.id)
	}
	switch {
	case now != nil && len(now.problems) > 0:
		t.tables.put(tableComplaints, now)
	case old != nil && len(old.problems) > 0:
		t.tables.delete(tableComplaints, old)
	}
}

// idle: the derivation found nothing and leaves nothing, so its subject is gone and
// it is forgotten. One that found something may yet make something of it, when
// what it lacks turns up.
func (d *derivation) idle() bool {
	return !d.found && !d.kept && len(d.makes) == 0 && len(d.facts) == 0 && len(d.demands) == 0 && len(d.problems) == 0
}

func (t *tx) kept(id DerivationID) bool {
	_, root := t.ix.roots[id]
	return root || t.ix.demanded[id] != nil
}

func (t *tx) dispose(id DerivationID) {
	old := t.derivation(id)
	if old == nil {
		t.unqueue(id) // demanded and released before it ever ran
		return
	}
	r := &Reader{tx: t, id: id, old: old}
	none := derivation{id: id}
	t.forgetReads(id, old.reads)
	t.settleResources(id, old, &none, r)
	t.settleFacts(old, &none)
	t.settleDemands(id, old, &none, nil)
	t.keepDerivation(old, nil)
	t.unqueue(id)
}

// unqueue lets a derivation sleep on.
func (t *tx) unqueue(id DerivationID) {
	if _, awake := t.queued[id]; !awake {
		return
	}
	delete(t.queued, id)
	rank := t.ix.rules.Rank(id)
	t.queue[rank] = slices.DeleteFunc(t.queue[rank], func(x DerivationID) bool { return x == id })
}

// release notes that a derivation lost its last demander. It is disposed of when
// nobody demands it again within the transaction.
func (t *tx) release(id DerivationID) {
	if t.releasing == nil {
		t.releasing = map[DerivationID]struct{}{}
	}
	t.released = append(t.released, id)
	t.releasing[id] = struct{}{}
}

func (t *tx) isReleased(id DerivationID) bool {
	_, ok := t.releasing[id]
	return ok
}
