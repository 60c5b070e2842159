package index

import "slices"

// DerivationID names a derivation: a form and a subject, "host/a.example". The
// part before the first slash is its form.
type DerivationID string

// Rules say what the index's objects mean. They are pure: every answer depends
// on the arguments alone, and Derive on what it reads through its Reader.
type Rules interface {
	// Kinds and Types are fixed for the life of an index.
	Kinds() []KindSpec
	Types() []TypeSpec
	// Prepare fills an object's Lookups and Note, once, before it is stored.
	Prepare(o *Object)
	// Subjects are the derivations that an object may bring into being by its
	// lookups. A derivation among them that makes nothing and found nothing, no
	// object and no fact, is forgotten.
	Subjects(o *Object) []DerivationID
	// Roots are the derivations that always exist.
	Roots() []DerivationID
	// Rank orders derivations: one may read the facts of lower ranks only, and
	// demand only those of a rank that differs from its own. 0 to MaxRank.
	Rank(id DerivationID) int
	// Derive makes the resources, facts, demands and problems of one subject.
	// param is what the demander gave; nil for a subject or root.
	Derive(id DerivationID, param any, r *Reader)
}

// MaxRank is the highest rank of a derivation.
const MaxRank = 7

// Presence is the outcome of a Get.
type Presence uint8

const (
	// NotKnown: not found, and the kind is not complete: it may well exist.
	NotKnown Presence = iota
	// Missing: not found, and the kind is complete.
	Missing
	// Found it.
	Found
)

// Fact is a value that one derivation leaves for others of higher rank.
type Fact struct {
	// Key has a form and a subject, "tls/a.example"; ranges are over a form.
	Key string
	// Value is immutable; Digest tells two values apart.
	Value  any
	Digest Digest
	// Provenance is filled by the index.
	Provenance Provenance
}

// Draft is a resource as a derivation makes it; see Resource for the fields.
type Draft struct {
	Type, Name  string
	Body        []byte
	Refs        []ResourceKey
	ClosedWorld bool
	Sources     []ObjectKey
}

// Reader is a derivation's only view of the index, and records what is read.
// What Emit and SetFact are given carries the provenance of all reads so far, so
// a derivation emits early what depends on little.
type Reader struct {
	tx   *tx
	id   DerivationID
	prov Provenance
	// reads are those under which a later change runs the derivation again; run
	// is their mark.
	reads []*read
	run   uint64
	out   derivation
	old   *derivation
	// drafts are the resources that it makes.
	drafts   []draft
	lastProv Provenance
	demands  []demand
	// demanding gives the place of each of demands.
	demanding map[DerivationID]int
}

// Get looks up one object. When it is not found the kind joins the needs as
// NeedMissing, and the derivation runs again when the kind becomes complete.
// Derive must treat NotKnown as "may well exist": what it makes then is held back.
func (r *Reader) Get(kind Kind, namespace, name string) (*Object, Presence) {
	k := ObjectKey{kind, namespace, name}
	r.reading(readObject(k))
	if o := r.tx.object(k); o != nil {
		r.found(o)
		return o, Found
	}
	if r.ReliesOnAbsence(kind) {
		return nil, Missing
	}
	return nil, NotKnown
}

// Range gives the objects of a kind with a lookup, ordered by namespace and
// name. need says what their absence means; see Need.
func (r *Reader) Range(kind Kind, lookup string, need Need) []*Object {
	r.reading(readRange(kind, lookup))
	r.need(kind, need)
	out := r.tx.lookup(kind, lookup)
	for _, o := range out {
		r.found(o)
	}
	return out
}

// ReliesOnAbsence declares that what comes next says "not there" about the
// kind, and reports whether the kind is complete.
func (r *Reader) ReliesOnAbsence(kind Kind) bool {
	r.need(kind, NeedMissing)
	return r.Complete(kind)
}

// Complete reports whether the kind is complete; the derivation runs again when
// that changes.
func (r *Reader) Complete(kind Kind) bool {
	r.reading(readKind(kind))
	row := r.tx.kind(kind)
	return row != nil && row.Complete()
}

// Fact reads another derivation's fact, and takes on its provenance.
func (r *Reader) Fact(key string) (*Fact, bool) {
	r.reading(readFact(key))
	f := r.tx.fact(key)
	if f == nil {
		return nil, false
	}
	r.used(f)
	return f, true
}

// Facts reads every fact of a form ("tls"), ordered by key, and takes on their
// provenance. need applies to each of the kinds: those that could make more facts.
func (r *Reader) Facts(form string, need Need, kinds ...Kind) []*Fact {
	r.reading(readFacts(form))
	for _, k := range kinds {
		r.need(k, need)
	}
	out := r.tx.facts(form)
	for _, f := range out {
		r.used(f)
	}
	return out
}

// Witnessed reports whether a client is known to hold a version of a resource
// that the index could not make when the client came.
func (r *Reader) Witnessed(k ResourceKey) bool {
	r.reading(readWitness(k))
	_, ok := r.tx.ix.witnessed[k]
	return ok
}

// Previous gives what this derivation made the last time, by key; nil if it did
// not make it.
func (r *Reader) Previous(k ResourceKey) *Resource {
	if r.old == nil {
		return nil
	}
	for _, m := range r.old.makes {
		if m == k {
			return r.tx.resource(k)
		}
	}
	return nil
}

// PreviousFact gives the fact that this derivation left the last time.
func (r *Reader) PreviousFact(key string) *Fact {
	if r.old == nil {
		return nil
	}
	for i := range r.old.facts {
		if r.old.facts[i].Key == key {
			return &r.old.facts[i]
		}
	}
	return nil
}

// Emit makes a resource with the provenance of all reads so far. Making the same
// resource twice, or one that another derivation makes, is a broken invariant.
func (r *Reader) Emit(d Draft) { r.drafts = append(r.drafts, draft{d, r.Provenance()}) }

// SetFact leaves a fact with the provenance of all reads so far.
func (r *Reader) SetFact(f Fact) {
	f.Provenance = r.Provenance()
	r.out.facts = append(r.out.facts, f)
}

// Demand keeps another derivation alive for as long as this one demands it. Its
// param must be the same whoever demands it. wanted are the kinds that may decide
// whether it is wanted: what is demanded is only removed when those of them that
// were read so far are complete.
func (r *Reader) Demand(id DerivationID, param any, wanted ...Kind) {
	basis := r.wantedFor(wanted)
	if r.demanding == nil {
		r.demanding = map[DerivationID]int{}
	}
	if i, again := r.demanding[id]; again {
		d := &r.demands[i]
		d.basis = slices.Clone(d.basis).mergeAll(basis)
		return
	}
	r.demanding[id] = len(r.demands)
	r.demands = append(r.demands, demand{id: id, param: param, basis: basis})
}

// wantedFor gives what of the kinds was read so far: the same slice as for the
// demand before, when it is equal.
func (r *Reader) wantedFor(kinds []Kind) Provenance {
	basis := make(Provenance, 0, len(kinds))
	for _, k := range kinds {
		if b := r.prov.Of(k); b.Found || b.Need != 0 {
			basis = basis.merge(b)
		}
	}
	if n := len(r.demands); n > 0 && equalProvenance(r.demands[n-1].basis, basis) {
		return r.demands[n-1].basis
	}
	return basis
}

// Problem reports what a user should know about an object. It is kept back while
// a kind whose absence was relied upon so far is not complete, and the derivation
// runs again when that changes, even where the reliance is a fact's.
func (r *Reader) Problem(p Problem) {
	for _, k := range r.prov.Needs(NeedMissing) {
		if !r.Complete(k) {
			r.out.kept = true
			return
		}
	}
	r.out.problems = append(r.out.problems, p)
}

// Provenance gives a copy of the provenance of all reads so far.
func (r *Reader) Provenance() Provenance {
	if r.lastProv != nil && equalProvenance(r.lastProv, r.prov) {
		return r.lastProv
	}
	r.lastProv = append(Provenance(nil), r.prov...)
	return r.lastProv
}

func equalProvenance(a, b Provenance) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// reading records a read, once in a run.
func (r *Reader) reading(id readID) {
	x := r.tx.ix.reads.make(id)
	if x.run != r.run {
		x.run = r.run
		r.reads = append(r.reads, x)
	}
}

func (r *Reader) found(o *Object) {
	r.out.found = true
	r.prov = r.prov.merge(Basis{Kind: o.Kind, Found: true, Known: true, Read: true, Version: o.Version})
}

func (r *Reader) used(f *Fact) {
	r.out.found = true
	r.prov = r.prov.mergeAll(f.Provenance)
}

func (r *Reader) need(k Kind, n Need) {
	b := Basis{Kind: k, Need: n, Read: true}
	if row := r.tx.kind(k); row != nil && row.Frontier.Observed {
		b.Known, b.Version = true, row.Events
	}
	r.prov = r.prov.merge(b)
}
