package index

import (
	"slices"
)

// tx is one write transaction: the changes of an Apply and the derivations that
// follow from them.
type tx struct {
	ix       *Index
	tables   tables // of a write transaction
	revision Revision
	source   string
	kinds    []*KindRow // the snapshot's, until one is edited
	edited   []bool     // rows of kinds that are this transaction's own

	queue     [MaxRank + 1][]DerivationID
	unsorted  [MaxRank + 1]bool
	queued    map[DerivationID]struct{}
	released  []DerivationID             // lost their last demander, in that order
	releasing map[DerivationID]struct{}  // the same
	before    map[DerivationID][]Problem // what derivations said before they ran

	// What happened, for the commit.
	dirty           bool
	ran             []DerivationID
	changed         map[ResourceKey]struct{}
	completed       []Kind
	completeness    bool
	problemsChanged bool
	problems        []Problem // those of the source that are new
}

func (t *tx) apply(c Change) {
	switch c := c.(type) {
	case Upsert:
		t.upsert(c.Object, c.InOrder)
		if c.InOrder {
			t.advance(c.Object.Kind, c.Object.Version, true)
		}
	case Delete:
		t.remove(c.Key)
		t.advance(c.Key.Kind, c.Version, true)
	case Replace:
		t.replace(c)
	case Bookmark:
		t.advance(c.Kind, c.Version, false)
	case KindStatus:
		t.status(c)
	case SourceID:
		t.dirty = t.dirty || t.source != c.ID
		t.source = c.ID
	case Witness:
		t.witness(c.Resource)
	case Problems:
		t.sourceProblem(c)
	}
}

// upsert stores an object unless what is there is the same or newer: what is
// seen before a list has ended may come from a replica of the API server that
// lags.
func (t *tx) upsert(o *Object, inOrder bool) {
	old := t.object(o.ObjectKey)
	if old != nil && o.Version != 0 && old.Version == o.Version {
		return
	}
	if !inOrder && (t.outdated(o, old) || t.aheadOfItsList(o, old)) {
		return
	}
	t.keep(old, o)
}

// aheadOfItsList: a relist shows a change of an object early. What the object has
// lost since may have gone to another one that comes later in the list (an address
// that moves between EndpointSlices), so it has to wait for the whole. An object
// that is new can only add.
func (t *tx) aheadOfItsList(o, old *Object) bool {
	row := t.kind(o.Kind)
	return old != nil && row != nil && row.Frontier.Observed && o.Version != 0
}

// outdated: the object is older than what is there, or than the frontier at which
// it is known to be gone.
func (t *tx) outdated(o, old *Object) bool {
	if o.Version == 0 {
		return false
	}
	if old != nil {
		return old.Version > o.Version
	}
	row := t.kind(o.Kind)
	return row != nil && row.Frontier.Reaches(o.Version)
}

func (t *tx) keep(old, o *Object) {
	if old == o {
		return // a source without versions hands the same row over again
	}
	t.ix.rules.Prepare(o)
	t.putObject(o)
	t.ix.lookups.put(old, o)
	t.count(o.Kind, old == nil, 1)
	t.touchObject(old)
	t.touchObject(o)
}

func (t *tx) remove(k ObjectKey) {
	old := t.object(k)
	if old == nil {
		return
	}
	t.deleteObject(old)
	t.ix.lookups.put(old, nil)
	t.count(k.Kind, true, -1)
	t.touchObject(old)
}

// advance moves the frontier of an observed kind forward.
func (t *tx) advance(k Kind, v ResourceVersion, event bool) {
	row := t.kind(k)
	if row == nil || !row.Frontier.Observed || (row.Frontier.Version >= v && (!event || row.Events >= v)) {
		return
	}
	t.setKind(k, func(row *KindRow) {
		row.Frontier.Version = max(row.Frontier.Version, v)
		if event {
			row.Events = max(row.Events, v)
		}
	})
}

func (t *tx) status(c KindStatus) {
	t.setKind(c.Kind, func(row *KindRow) {
		if row.State != c.State {
			row.State, row.Since = c.State, c.At
		}
		row.LastError = c.Error
	})
}

// setKind replaces a kind's row. A kind that becomes complete, or ceases to be
// taken for absent, wakes those who asked.
func (t *tx) setKind(k Kind, edit func(*KindRow)) {
	now := t.kind(k)
	if now == nil {
		return
	}
	old, row := *now, *now
	edit(&row)
	if row == old {
		return
	}
	*t.editKind(k) = row
	t.completeness = true
	if row.Complete() == old.Complete() {
		return
	}
	if row.Complete() {
		t.completed = append(t.completed, k)
	}
	t.touch(readKind(k))
}

// editKind gives the kind's row to be modified: a copy of the snapshot's, the
// first time.
func (t *tx) editKind(k Kind) *KindRow {
	i := slices.IndexFunc(t.kinds, func(row *KindRow) bool { return row.Kind == k })
	if t.edited == nil {
		t.kinds, t.edited = slices.Clone(t.kinds), make([]bool, len(t.kinds))
	}
	if !t.edited[i] {
		row := *t.kinds[i]
		t.kinds[i], t.edited[i] = &row, true
	}
	t.dirty = true
	return t.kinds[i]
}

func (t *tx) count(k Kind, changed bool, by int) {
	if changed && t.kind(k) != nil {
		t.editKind(k).Objects += by
	}
}

// maxWitnessed bounds what clients can make the index remember.
const maxWitnessed = 1 << 16

func (t *tx) witness(k ResourceKey) {
	if _, known := t.ix.witnessed[k]; known || t.resource(k) != nil || len(t.ix.witnessed) >= maxWitnessed {
		return
	}
	t.ix.witnessed[k] = struct{}{}
	t.touch(readWitness(k))
}

func (t *tx) sourceProblem(c Problems) {
	if len(c.List) == 0 && len(t.ix.problems[c.Subject]) == 0 {
		return
	}
	t.dirty, t.problemsChanged = true, true
	t.problems = appendNew(t.problems, t.ix.problems[c.Subject], c.List)
	if len(c.List) == 0 {
		delete(t.ix.problems, c.Subject)
		return
	}
	t.ix.problems[c.Subject] = c.List
}

func (t *tx) sourceProblems() []Problem {
	subjects := make([]string, 0, len(t.ix.problems))
	for s := range t.ix.problems {
		subjects = append(subjects, s)
	}
	slices.Sort(subjects)
	var out []Problem
	for _, s := range subjects {
		out = append(out, t.ix.problems[s]...)
	}
	return out
}

// touchObject wakes whoever read the object, a range that it is in, or may be
// brought into being by it.
func (t *tx) touchObject(o *Object) {
	if o == nil {
		return
	}
	t.touch(readObject(o.ObjectKey))
	for _, l := range o.Lookups {
		t.touch(readRange(o.Kind, l))
	}
	for _, id := range t.ix.rules.Subjects(o) {
		t.wake(id)
	}
}

func (t *tx) touch(id readID) {
	if x := t.ix.reads.get(id); x != nil {
		x.readers.each(t.wake)
	}
}

func (t *tx) wake(id DerivationID) {
	if _, dup := t.queued[id]; dup {
		return
	}
	if t.queued == nil {
		t.queued = map[DerivationID]struct{}{}
	}
	t.queued[id] = struct{}{}
	rank := t.ix.rules.Rank(id)
	t.queue[rank] = append(t.queue[rank], id)
	t.unsorted[rank] = true
}

// The tables, typed.

func (t *tx) putObject(o *Object) {
	t.dirty = true
	t.tables.put(tableObjects, o)
}

func (t *tx) deleteObject(o *Object) {
	t.dirty = true
	t.tables.delete(tableObjects, o)
}

func (t *tx) putResource(r *Resource) {
	t.dirty = true
	t.tables.put(tableResources, r)
}

func (t *tx) deleteResource(r *Resource) {
	t.dirty = true
	t.tables.delete(tableResources, r)
}

func (t *tx) putTombstone(x *Tombstone) {
	t.dirty = true
	t.tables.put(tableTombstones, x)
}

func (t *tx) deleteTombstone(x *Tombstone) {
	t.dirty = true
	t.tables.delete(tableTombstones, x)
}

func (t *tx) kind(k Kind) *KindRow {
	for _, row := range t.kinds {
		if row.Kind == k {
			return row
		}
	}
	return nil
}

func (t *tx) object(k ObjectKey) *Object { return t.tables.object(k) }

func (t *tx) fact(key string) *Fact { return t.ix.facts.byKey[key] }

func (t *tx) resource(k ResourceKey) *Resource { return t.tables.resource(k) }

func (t *tx) tombstone(k ResourceKey) *Tombstone { return t.tables.tombstone(k) }

func (t *tx) derivation(id DerivationID) *derivation { return t.ix.derivations[id] }

func (t *tx) facts(form string) []*Fact { return slices.Clone(t.ix.facts.of(form)) }

func (t *tx) lookup(k Kind, lookup string) []*Object {
	return slices.Clone(t.ix.lookups[lookupKey{k, lookup}])
}

// appendNew appends those of the new problems that the old ones lack.
func appendNew(to, old, list []Problem) []Problem {
	for _, p := range list {
		if !slices.Contains(old, p) {
			to = append(to, p)
		}
	}
	return to
}
