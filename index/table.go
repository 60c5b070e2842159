package index

import (
	"iter"

	"github.com/google/btree"
)

// table is one ordered table of immutable rows: a B-tree whose copies share all
// that neither has changed. A snapshot holds the tables of its revision; a
// transaction edits copies of them. Not to be copied by value and edited through
// both.
type table[K, R any] struct {
	of    string // the kind or type whose rows it has
	tree  *btree.BTreeG[row[K, R]]
	owner Revision // the transaction that may edit it
}

type row[K, R any] struct {
	key K
	row R
}

// degree makes nodes of at most 31 rows: small to copy, at one to a change.
const degree = 16

func newTable[K, R any](of string, less func(a, b K) bool) table[K, R] {
	return table[K, R]{of: of, tree: btree.NewG(degree, func(a, b row[K, R]) bool { return less(a.key, b.key) })}
}

// get gives the row under a key, or the zero value.
func (t *table[K, R]) get(k K) R {
	r, _ := t.tree.Get(row[K, R]{key: k})
	return r.row
}

// all gives the rows in the order of their keys.
func (t *table[K, R]) all() iter.Seq[R] {
	return func(yield func(R) bool) {
		t.tree.Ascend(func(r row[K, R]) bool { return yield(r.row) })
	}
}

func (t *table[K, R]) put(by Revision, k K, r R) {
	t.own(by)
	t.tree.ReplaceOrInsert(row[K, R]{k, r})
}

func (t *table[K, R]) delete(by Revision, k K) {
	t.own(by)
	t.tree.Delete(row[K, R]{key: k})
}

// own makes the table a copy for the transaction, before its first edit.
func (t *table[K, R]) own(by Revision) {
	if t.owner != by {
		t.tree, t.owner = t.tree.Clone(), by
	}
}
