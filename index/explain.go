package index

import "slices"

// Derived describes a derivation that has run, for a person.
type Derived struct {
	ID    DerivationID  `json:"id"`
	Reads []Read        `json:"reads"`
	Makes []ResourceKey `json:"makes,omitempty"`
	// Facts that it left for others, and the derivations that it demands.
	Facts    []string       `json:"facts,omitempty"`
	Demands  []DerivationID `json:"demands,omitempty"`
	Problems []Problem      `json:"problems,omitempty"`
	// DemandedBy are the derivations that want this one; none for a subject or root.
	DemandedBy []DerivationID `json:"demandedBy,omitempty"`
}

// Read is one thing that a derivation looked at, and at whose change it runs again.
// One of its fields is set; Kind goes with Lookup, and stands alone where only the
// kind's completeness was asked for.
type Read struct {
	// Object was looked up by its name, whether or not it is there.
	Object *ObjectKey `json:"object,omitempty"`
	Kind   Kind       `json:"kind,omitempty"`
	// Lookup of a range: all objects of Kind that have it, "fqdn=a.example".
	Lookup string `json:"lookup,omitempty"`
	// Objects that the range found.
	Objects []ObjectKey `json:"objects,omitempty"`
	// Fact is a fact's key, or a form with "/*" for all of its facts.
	Fact string `json:"fact,omitempty"`
	// Witness: does a client hold a version of this resource?
	Witness *ResourceKey `json:"witness,omitempty"`
}

// String gives the read as a person would say it.
func (r Read) String() string {
	switch {
	case r.Object != nil:
		return r.Object.String()
	case r.Lookup != "":
		return "every " + string(r.Kind) + " with " + r.Lookup
	case r.Fact != "":
		return "fact " + r.Fact
	case r.Witness != nil:
		return "who holds " + r.Witness.String()
	default:
		return "whether " + string(r.Kind) + " is complete"
	}
}

func (x readID) describe() Read {
	switch x.form {
	case formObject:
		return Read{Object: &ObjectKey{x.kind, x.namespace, x.name}}
	case formRange:
		return Read{Kind: x.kind, Lookup: x.name}
	case formFact:
		return Read{Fact: x.name}
	case formFacts:
		return Read{Fact: x.name + "/*"}
	case formWitness:
		return Read{Witness: &ResourceKey{x.namespace, x.name}}
	default:
		return Read{Kind: x.kind}
	}
}

// Derived describes the newest run of a derivation; ok is false for one that has not
// run, or has been forgotten since its subject is gone. Who read what is no part
// of a snapshot, so this and Readers wait for a commit under way.
func (ix *Index) Derived(id DerivationID) (out Derived, ok bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	d := ix.derivations[id]
	if d == nil {
		return Derived{}, false
	}
	out = Derived{ID: d.id, Makes: d.makes, Problems: d.problems}
	for _, x := range d.reads {
		r := x.id.describe()
		for _, o := range ix.lookups[lookupKey{r.Kind, r.Lookup}] {
			r.Objects = append(r.Objects, o.ObjectKey)
		}
		out.Reads = append(out.Reads, r)
	}
	for i := range d.facts {
		out.Facts = append(out.Facts, d.facts[i].Key)
	}
	out.Demands = slices.Clone(d.demands)
	if by := ix.demanded[id]; by != nil {
		by.by.each(func(id DerivationID) { out.DemandedBy = append(out.DemandedBy, id) })
		slices.Sort(out.DemandedBy)
	}
	return out, true
}

// Readers gives the derivations that run again when the object changes, comes or
// goes, sorted. The object need not exist.
func (ix *Index) Readers(k ObjectKey) []DerivationID {
	reads := []readID{readObject(k)}
	if o := ix.Snapshot().Object(k); o != nil {
		for _, l := range o.Lookups {
			reads = append(reads, readRange(k.Kind, l))
		}
	}
	ix.mu.Lock()
	defer ix.mu.Unlock()
	var out []DerivationID
	for _, id := range reads {
		if x := ix.reads.get(id); x != nil {
			x.readers.each(func(id DerivationID) { out = append(out, id) })
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// counts are numbers of resources of one type.
type counts struct{ live, dead int }

// Count gives the number of a type's live resources and of its tombstones.
func (s *Snapshot) Count(typeURL string) (resources, tombstones int) {
	c := s.counts[typeURL]
	return c.live, c.dead
}

// LogStart is the revision after which Changes has an answer.
func (s *Snapshot) LogStart() Revision { return s.logStart }
