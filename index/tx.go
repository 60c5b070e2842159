package index

import (
	"iter"
	"slices"

	memdb "github.com/hashicorp/go-memdb"
)

// tx is one write transaction: the changes of an Apply and the derivations that
// follow from them.
type tx struct {
	ix       *Index
	txn      *memdb.Txn
	revision Revision
	source   string

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
	if !inOrder && t.outdated(o, old) {
		return
	}
	t.keep(old, o)
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
	t.put(tableObjects, o)
	t.count(o.Kind, old == nil, 1)
	t.touchObject(old)
	t.touchObject(o)
}

func (t *tx) remove(k ObjectKey) {
	old := t.object(k)
	if old == nil {
		return
	}
	t.delete(tableObjects, old)
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
	old := t.kind(k)
	if old == nil {
		return
	}
	row := *old
	edit(&row)
	if row == *old {
		return
	}
	t.put(tableKinds, &row)
	t.completeness = true
	if row.Complete() == old.Complete() {
		return
	}
	if row.Complete() {
		t.completed = append(t.completed, k)
	}
	t.touch(readKind(k))
}

func (t *tx) count(k Kind, changed bool, by int) {
	if !changed {
		return
	}
	if old := t.kind(k); old != nil {
		row := *old
		row.Objects += by
		t.put(tableKinds, &row)
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

func (t *tx) touch(key string) {
	for id := range t.ix.readers[key] {
		t.wake(id)
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

func (t *tx) put(table string, row any) {
	t.dirty = true
	if err := t.txn.Insert(table, row); err != nil {
		panic("index: " + err.Error())
	}
}

func (t *tx) delete(table string, row any) {
	t.dirty = true
	if err := t.txn.Delete(table, row); err != nil {
		panic("index: " + err.Error())
	}
}

func (t *tx) kind(k Kind) *KindRow { return first[*KindRow](t.txn, tableKinds, string(k)) }

func (t *tx) object(k ObjectKey) *Object { return first[*Object](t.txn, tableObjects, k.path()) }

func (t *tx) fact(key string) *Fact { return first[*Fact](t.txn, tableFacts, key) }

func (t *tx) resource(k ResourceKey) *Resource {
	return first[*Resource](t.txn, tableResources, k.path())
}

func (t *tx) tombstone(k ResourceKey) *Tombstone {
	return first[*Tombstone](t.txn, tableTombstones, k.path())
}

func (t *tx) derivation(id DerivationID) *derivation {
	return first[*derivation](t.txn, tableDerivations, string(id))
}

func (t *tx) facts(form string) []*Fact {
	return slices.Collect(each[*Fact](t.txn, tableFacts, form+"/"))
}

func (t *tx) lookup(k Kind, lookup string) []*Object {
	it, err := t.txn.Get(tableObjects, indexLookup, string(k)+"/"+lookup)
	if err != nil {
		panic("index: " + err.Error())
	}
	return slices.Collect(rows[*Object](it))
}

func rows[T any](it memdb.ResultIterator) iter.Seq[T] {
	return func(yield func(T) bool) {
		for raw := it.Next(); raw != nil; raw = it.Next() {
			if !yield(raw.(T)) {
				return
			}
		}
	}
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
