package index

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	memdb "github.com/hashicorp/go-memdb"
)

// Index is the one store of objects and what is derived from them. Apply may be
// called from several goroutines; snapshots are taken without blocking it.
type Index struct {
	// Set by New.
	rules  Rules
	types  map[string]*TypeSpec
	kinds  []Kind
	codes  map[Kind]string
	kindOf map[string]Kind
	roots  map[DerivationID]struct{}
	db     *memdb.MemDB

	// Owned by whoever holds mu: a writer.
	mu          sync.Mutex
	reads       readTable
	lookups     lookups
	facts       *facts
	derivations map[DerivationID]*derivation
	demanded    map[DerivationID]*demanders
	ordinals    map[string]*ordinals
	problems    map[string][]Problem // of the source
	runs        uint64               // of derivations, since the beginning
	// witnessed resources: clients hold them though the index does not.
	witnessed map[ResourceKey]struct{}

	// Guarded by published: the newest snapshot, for readers.
	published sync.RWMutex
	latest    *Snapshot
	next      chan struct{} // closed at the next commit
	passed    map[any]Revision
}

type demanders struct {
	param any
	basis Provenance // of all demanders, joined; never modified in place
	by    idSet
}

// New makes an empty index and runs the rules' roots.
func New(rules Rules) (*Index, error) {
	db, err := memdb.NewMemDB(schema)
	if err != nil {
		return nil, fmt.Errorf("index schema: %w", err)
	}
	ix := &Index{
		db:          db,
		rules:       rules,
		types:       map[string]*TypeSpec{},
		codes:       map[Kind]string{},
		kindOf:      map[string]Kind{},
		roots:       map[DerivationID]struct{}{},
		reads:       newReadTable(),
		lookups:     lookups{},
		facts:       newFacts(),
		derivations: map[DerivationID]*derivation{},
		demanded:    map[DerivationID]*demanders{},
		ordinals:    map[string]*ordinals{},
		problems:    map[string][]Problem{},
		witnessed:   map[ResourceKey]struct{}{},
		next:        make(chan struct{}),
		passed:      map[any]Revision{},
	}
	for _, t := range rules.Types() {
		ix.types[t.URL] = &t
		ix.ordinals[t.URL] = &ordinals{}
	}
	for _, k := range rules.Kinds() {
		if other, taken := ix.kindOf[k.Code]; taken {
			return nil, fmt.Errorf("kinds %s and %s have the same code %q", other, k.Kind, k.Code)
		}
		if k.Code == "" || strings.ContainsAny(k.Code, tokenMarks) {
			return nil, fmt.Errorf("kind %s: code %q is empty or has one of %q, which have a meaning in tokens", k.Kind, k.Code, tokenMarks)
		}
		ix.kinds = append(ix.kinds, k.Kind)
		ix.codes[k.Kind], ix.kindOf[k.Code] = k.Code, k.Kind
	}
	t := ix.begin()
	defer t.end()
	t.dirty = true
	for _, k := range rules.Kinds() {
		t.kinds = append(t.kinds, &KindRow{KindSpec: k, State: Unknown})
	}
	for _, id := range rules.Roots() {
		ix.roots[id] = struct{}{}
		t.wake(id)
	}
	t.run()
	ix.publish(t, Cause{})
	return ix, nil
}

// Commit is what one Apply brought about.
type Commit struct {
	Revision Revision
	// Derivations run, in order; a derivation may run more than once.
	Derivations []DerivationID
	// Changed resources and tombstones, sorted by type and name.
	Changed []ResourceKey
	// Observed kinds: those that became complete by this commit.
	Observed []Kind
	// Problems that are new with this commit.
	Problems []Problem
}

// Apply makes the changes, the derivations that follow from them and the new
// revision visible in one step. It gives the same revision back when nothing
// changed at all.
func (ix *Index) Apply(cause Cause, changes ...Change) Commit {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	t := ix.begin()
	defer t.end()
	for _, c := range changes {
		t.apply(c)
	}
	t.run()
	return ix.publish(t, cause)
}

// Snapshot gives the newest snapshot.
func (ix *Index) Snapshot() *Snapshot {
	ix.published.RLock()
	defer ix.published.RUnlock()
	return ix.latest
}

// Changed gives a channel that is closed once a revision above since exists.
func (ix *Index) Changed(since Revision) <-chan struct{} {
	ix.published.RLock()
	defer ix.published.RUnlock()
	if ix.latest.revision > since {
		return closedChannel
	}
	return ix.next
}

var closedChannel = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Pass says that a reader (a stream) is done with everything up to the revision.
// Tombstones and the log of changes are kept for the slowest reader. Leave ends it.
func (ix *Index) Pass(reader any, r Revision) {
	ix.published.Lock()
	defer ix.published.Unlock()
	ix.passed[reader] = r
}

// Leave forgets a reader.
func (ix *Index) Leave(reader any) {
	ix.published.Lock()
	defer ix.published.Unlock()
	delete(ix.passed, reader)
}

func (ix *Index) begin() *tx {
	t := &tx{
		ix: ix, revision: 1, tables: tables{ix.db.Txn(true)},
		changed: map[ResourceKey]struct{}{}, before: map[DerivationID][]Problem{},
	}
	if prev := ix.latest; prev != nil {
		t.revision, t.source, t.kinds = prev.revision+1, prev.source, prev.kinds
	}
	return t
}

// end gives up a transaction that was not published: nothing had changed, or the
// rules panicked.
func (t *tx) end() { t.tables.txn.Abort() }

// publish commits t and makes its snapshot the newest.
func (ix *Index) publish(t *tx, cause Cause) Commit {
	prev := ix.latest
	if prev != nil && !t.dirty {
		return Commit{Revision: prev.revision}
	}
	// A reader that turns up from here on takes the previous snapshot at the oldest.
	slowest := ix.slowest(t.revision - 1)
	t.sweep(slowest)
	problems := slices.Concat(t.problems, t.newProblems())
	t.tables.txn.Commit()
	s := &Snapshot{index: ix, revision: t.revision, source: t.source, kinds: t.kinds, tables: tables{ix.db.Txn(false)}}
	c := Commit{Revision: t.revision, Derivations: t.ran, Observed: t.completed, Problems: problems, Changed: make([]ResourceKey, 0, len(t.changed))}
	for k := range t.changed {
		c.Changed = append(c.Changed, k)
	}
	slices.SortFunc(c.Changed, compareKeys)
	entry := LogEntry{Revision: t.revision, Cause: cause, Changed: c.Changed, Completeness: t.completeness}
	s.counts = make(map[string]counts, len(ix.ordinals))
	for url, o := range ix.ordinals {
		s.counts[url] = o.counts
	}
	if t.problemsChanged || prev == nil {
		s.sourceProblems = t.sourceProblems()
	} else {
		s.sourceProblems = prev.sourceProblems
	}

	ix.published.Lock()
	defer ix.published.Unlock()
	if prev != nil {
		s.log = trimLog(prev.log, slowest)
		s.logStart = prev.logStart
		if len(s.log) < len(prev.log) {
			s.logStart = prev.log[len(prev.log)-len(s.log)-1].Revision
		}
	}
	s.log = append(s.log, entry)
	ix.latest = s
	close(ix.next)
	ix.next = make(chan struct{})
	return c
}

func (ix *Index) slowest(r Revision) Revision {
	ix.published.RLock()
	defer ix.published.RUnlock()
	for _, p := range ix.passed {
		r = min(r, p)
	}
	return r
}

// maxLog bounds the log of changes; a reader that is further behind compares
// everything instead.
const maxLog = 4096

// trimLog drops entries that every reader has passed. It drops in halves, so
// that the copy is rare.
func trimLog(log []LogEntry, slowest Revision) []LogEntry {
	drop := 0
	for drop < len(log) && log[drop].Revision <= slowest {
		drop++
	}
	if over := len(log) - maxLog; over > drop {
		drop = over + maxLog/2
	}
	if drop*2 < len(log) || drop < 64 {
		return log
	}
	return append([]LogEntry(nil), log[drop:]...)
}
