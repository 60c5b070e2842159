package index

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
)

// Snapshot is the index at one revision: objects, resources and completeness of
// the same moment. It is safe for concurrent use.
type Snapshot struct {
	index    *Index
	revision Revision
	source   string
	tables   tables
	kinds    []*KindRow

	// log has the changes of the revisions in (logStart, revision].
	log            []LogEntry
	logStart       Revision
	sourceProblems []Problem
	counts         map[string]counts // by type URL
}

// LogEntry tells what one revision changed.
type LogEntry struct {
	Revision Revision
	Cause    Cause
	// Changed resources and tombstones, sorted.
	Changed []ResourceKey
	// Completeness: a kind's frontier or state moved, so something that was
	// withheld may be free now.
	Completeness bool
}

// Revision of the snapshot.
func (s *Snapshot) Revision() Revision { return s.revision }

// Source is the source id of the tokens made from this snapshot.
func (s *Snapshot) Source() string { return s.source }

// Kinds gives the rows of all kinds, in the order of Rules.Kinds.
func (s *Snapshot) Kinds() []*KindRow { return s.kinds }

// Kind gives a kind's row; nil for a kind that the rules do not name.
func (s *Snapshot) Kind(k Kind) *KindRow {
	for _, row := range s.kinds {
		if row.Kind == k {
			return row
		}
	}
	return nil
}

// Type gives a resource type's description; nil for an unknown one.
func (s *Snapshot) Type(url string) *TypeSpec { return s.index.types[url] }

// Resource gives a live resource, or nil.
func (s *Snapshot) Resource(k ResourceKey) *Resource {
	return s.tables.resource(k)
}

// Tombstone gives the tombstone of a resource that was derived by this index
// and no longer is, or nil. A live resource has none.
func (s *Snapshot) Tombstone(k ResourceKey) *Tombstone {
	return s.tables.tombstone(k)
}

// Resources gives a type's live resources, ordered by name.
func (s *Snapshot) Resources(typeURL string) iter.Seq[*Resource] {
	return s.tables.resources(typeURL)
}

// Tombstones gives a type's tombstones, ordered by name.
func (s *Snapshot) Tombstones(typeURL string) iter.Seq[*Tombstone] {
	return s.tables.tombstones(typeURL)
}

// Object gives an object, or nil.
func (s *Snapshot) Object(k ObjectKey) *Object {
	return s.tables.object(k)
}

// Objects gives a kind's objects, ordered by namespace and name.
func (s *Snapshot) Objects(k Kind) iter.Seq[*Object] {
	return s.tables.objects(k)
}

// Problems gives what users should know about their objects: first what the
// source says, then what the derivations found, each only once.
func (s *Snapshot) Problems() []Problem {
	out := append([]Problem(nil), s.sourceProblems...)
	seen := map[problemKey]struct{}{}
	for d := range s.tables.complaints() {
		for _, p := range d.problems {
			k := problemKey{p.Object, p.Field, p.Message}
			if _, dup := seen[k]; !dup {
				seen[k] = struct{}{}
				out = append(out, p)
			}
		}
	}
	return out
}

type problemKey struct {
	object         ObjectKey
	field, message string
}

// Derivation describes one derivation for explain: the keys it read and the
// resources it makes. Of the newest revision, whichever the snapshot is of: what
// only explain asks for is not kept for each.
func (s *Snapshot) Derivation(id DerivationID) (reads []string, makes []ResourceKey, ok bool) {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	d := s.index.derivations[id]
	if d == nil {
		return nil, nil, false
	}
	for _, x := range d.reads {
		reads = append(reads, x.id.String())
	}
	slices.Sort(reads)
	return reads, d.makes, true
}

// Changes gives the log after a revision. ok is false when the log no longer
// reaches back that far: then everything has to be compared.
func (s *Snapshot) Changes(since Revision) (entries []LogEntry, ok bool) {
	if since < s.logStart {
		return nil, false
	}
	lo := len(s.log)
	for lo > 0 && s.log[lo-1].Revision > since {
		lo--
	}
	return s.log[lo:], true
}

func compareKeys(a, b ResourceKey) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
}

// Version names the snapshot for people: source and revision.
func (s *Snapshot) Version() string {
	return s.source + "/" + strconv.FormatUint(uint64(s.revision), 10)
}
