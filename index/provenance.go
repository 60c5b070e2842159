package index

import "slices"

// Need says in which way a derivation relied on the absence of objects of a
// kind. It is a set of bits.
type Need uint8

const (
	// NeedMissing: a lookup found nothing and the result says so (a 503, a 502,
	// an empty endpoint list). Nothing derived from it may leave before the kind
	// is complete.
	NeedMissing Need = 1 << iota
	// NeedStrict: a range whose unseen members could change who wins (the oldest
	// owner of an fqdn). What an Envoy holds may not be changed before the kind
	// is complete; something new may be sent.
	NeedStrict
	// NeedMonotone: a range whose unseen members could only add. It holds back a
	// change only from those who hold a version that was made from objects of
	// the kind.
	NeedMonotone
	// NeedRemoval: the kind decides only whether the resource is wanted at all.
	// It holds back nothing but the removal.
	NeedRemoval
)

// Basis is what a resource owes to one kind.
type Basis struct {
	Kind Kind
	// Version is the highest version among the objects found and, for a kind
	// that is needed and complete, the kind's event frontier at that moment.
	Version ResourceVersion
	Found   bool // at least one object of the kind was found
	Need    Need
	// Known is set when Version means something: an object was found, or the
	// kind was observed.
	Known bool
	// Read is set when the derivation itself, or the maker of a fact that it used,
	// looked at the kind. Without it the kind decides only whether the resource is
	// wanted at all: its body is the same whatever the kind's objects are.
	Read bool
}

// Provenance is a resource's basis, sorted by kind. It is immutable.
type Provenance []Basis

// Of gives the basis for a kind; its zero value when the kind plays no part.
func (p Provenance) Of(k Kind) Basis {
	for _, b := range p {
		if b.Kind == k {
			return b
		}
	}
	return Basis{Kind: k}
}

// Needs gives the kinds on whose absence the derivation relied in one of the
// given ways.
func (p Provenance) Needs(n Need) []Kind {
	var out []Kind
	for _, b := range p {
		if b.Need&n != 0 {
			out = append(out, b.Kind)
		}
	}
	return out
}

func (p Provenance) sameNeeds(q Provenance) bool {
	return slices.EqualFunc(p, q, func(a, b Basis) bool {
		return a.Kind == b.Kind && a.Need == b.Need && a.Found == b.Found && a.Read == b.Read
	})
}

func (p Provenance) merge(b Basis) Provenance {
	i, ok := slices.BinarySearchFunc(p, b.Kind, func(x Basis, k Kind) int {
		switch {
		case x.Kind < k:
			return -1
		case x.Kind > k:
			return 1
		}
		return 0
	})
	if !ok {
		return slices.Insert(p, i, b)
	}
	x := &p[i]
	x.Found = x.Found || b.Found
	x.Need |= b.Need
	x.Read = x.Read || b.Read
	x.Known = x.Known || b.Known
	x.Version = max(x.Version, b.Version)
	return p
}

// capped gives p with the version of a kind at most v.
func (p Provenance) capped(k Kind, v ResourceVersion) Provenance {
	if p.Of(k).Version <= v {
		return p
	}
	out := slices.Clone(p)
	for i := range out {
		if out[i].Kind == k {
			out[i].Version = v
		}
	}
	return out
}

func (p Provenance) mergeAll(q Provenance) Provenance {
	for _, b := range q {
		p = p.merge(b)
	}
	return p
}
