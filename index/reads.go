package index

import "hash/maphash"

// A read is something that derivations read: an object, a range of objects, a
// kind's completeness, a fact, the facts of a form, whether a client holds
// something. It knows who read it; a change of it runs those again.
type read struct {
	id      readID
	readers idSet
	run     uint64 // the last run that read it
	next    *read  // another one with the same hash
}

// readID names a read. It is made of strings that exist anyway, so that asking
// for one allocates nothing.
type readID struct {
	form            readForm
	kind            Kind
	namespace, name string
}

type readForm byte

// The forms of reads, as explain shows them.
const (
	formObject  readForm = 'o' // kind, namespace, name
	formRange   readForm = 'l' // kind, name is the lookup
	formKind    readForm = 'k' // kind
	formFact    readForm = 'f' // name is the fact's key
	formFacts   readForm = 'p' // name is the form of facts
	formWitness readForm = 'w' // namespace is the type, name the resource's
)

func readObject(k ObjectKey) readID          { return readID{formObject, k.Kind, k.Namespace, k.Name} }
func readRange(k Kind, lookup string) readID { return readID{formRange, k, "", lookup} }
func readKind(k Kind) readID                 { return readID{formKind, k, "", ""} }
func readWitness(k ResourceKey) readID       { return readID{formWitness, "", k.Type, k.Name} }
func readFact(key string) readID             { return readID{formFact, "", "", key} }
func readFacts(form string) readID           { return readID{formFacts, "", "", form} }

// String gives the form that explain shows: "o:Service/ns/name".
func (x readID) String() string {
	s := string(x.form) + ":" + string(x.kind)
	switch x.form {
	case formObject:
		return s + "/" + x.namespace + "/" + x.name
	case formRange:
		return s + "/" + x.name
	case formWitness:
		return s + x.namespace + "|" + x.name
	}
	return s + x.name
}

// readTable finds reads by their names. It is a map of hashes, since a map of names
// would hold each name twice.
type readTable struct {
	seed  maphash.Seed
	reads map[uint64]*read // the first with the hash
}

func newReadTable() readTable {
	return readTable{seed: maphash.MakeSeed(), reads: map[uint64]*read{}}
}

// get gives the read with a name; nil when nobody has read it.
func (t *readTable) get(id readID) *read {
	x := t.reads[maphash.Comparable(t.seed, id)]
	for x != nil && x.id != id {
		x = x.next
	}
	return x
}

// make is get, but for one that nobody has read it makes it.
func (t *readTable) make(id readID) *read {
	h := maphash.Comparable(t.seed, id)
	first := t.reads[h]
	for x := first; x != nil; x = x.next {
		if x.id == id {
			return x
		}
	}
	x := &read{id: id, next: first}
	t.reads[h] = x
	return x
}

func (t *readTable) delete(gone *read) {
	h := maphash.Comparable(t.seed, gone.id)
	if first := t.reads[h]; first == gone {
		if gone.next == nil {
			delete(t.reads, h)
		} else {
			t.reads[h] = gone.next
		}
		return
	}
	for x := t.reads[h]; x != nil; x = x.next {
		if x.next == gone {
			x.next = gone.next
			return
		}
	}
}

// settleReads replaces what the derivation reads. run marks what the present run
// has read.
func (t *tx) settleReads(id DerivationID, old, now []*read, run uint64) {
	for _, x := range now {
		x.readers.add(id)
	}
	for _, x := range old {
		if x.run != run {
			t.forgetRead(id, x)
		}
	}
}

func (t *tx) forgetReads(id DerivationID, reads []*read) {
	for _, x := range reads {
		t.forgetRead(id, x)
	}
}

func (t *tx) forgetRead(id DerivationID, x *read) {
	if x.readers.remove(id) {
		t.ix.reads.delete(x)
	}
}

// idSet is a set of derivations. Most have one or two members, which a map would
// spend hundreds of bytes on; a kind's may have every derivation there is.
type idSet struct {
	few  []DerivationID
	many map[DerivationID]struct{}
}

const few = 8

func (s *idSet) add(id DerivationID) {
	if s.many != nil {
		s.many[id] = struct{}{}
		return
	}
	for _, x := range s.few {
		if x == id {
			return
		}
	}
	if len(s.few) < few {
		s.few = append(s.few, id)
		return
	}
	s.many = make(map[DerivationID]struct{}, 2*few)
	for _, x := range s.few {
		s.many[x] = struct{}{}
	}
	s.many[id] = struct{}{}
	s.few = nil
}

// remove reports whether the set is empty now.
func (s *idSet) remove(id DerivationID) bool {
	if s.many != nil {
		delete(s.many, id)
		return len(s.many) == 0
	}
	for i, x := range s.few {
		if x == id {
			s.few = append(s.few[:i], s.few[i+1:]...)
			break
		}
	}
	return len(s.few) == 0
}

func (s *idSet) each(f func(DerivationID)) {
	for _, id := range s.few {
		f(id)
	}
	for id := range s.many {
		f(id)
	}
}
