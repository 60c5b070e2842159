package index

import "slices"

// Aliasing says how names without a resource of their own are answered for: a
// handshake asks for the Secret "Shop.example", and that of "shop.example" is the
// answer.
//
// An alias is no row of the index: Snapshot.Resolve makes it of the first candidate
// that there is. So it changes with its target, moves to a better candidate when
// that one comes, and is absent only when every candidate is proven absent.
type Aliasing struct {
	// Candidates gives the names of the resources that may answer for a name, the
	// best first, without the name itself; none for a name that nothing can answer
	// for. It depends on the name alone.
	Candidates func(name string) []string
	// Rename gives a resource's body under another name.
	Rename func(body []byte, name string) []byte
}

// noOrdinal is an alias's: it is in no bit set.
const noOrdinal = ^uint32(0)

// Alias reports whether the resource is not made under its own name, but answered
// for by another. Its ordinal means nothing.
func (r *Resource) Alias() bool { return r.Ordinal == noOrdinal }

// Resolve gives a live resource, or the alias that answers for its name, or nil.
func (s *Snapshot) Resolve(k ResourceKey) *Resource {
	if r := s.Resource(k); r != nil {
		return r
	}
	for _, c := range s.Candidates(k) {
		if target := s.Resource(c); target != nil {
			return s.alias(k, target)
		}
	}
	return nil
}

// alias gives the target under another name. It relies on the absence of every
// better candidate, which any kind that feeds the type could bring: what a client
// holds is not exchanged for an alias before they are complete.
func (s *Snapshot) alias(k ResourceKey, target *Resource) *Resource {
	spec := s.Type(k.Type)
	r := *target
	r.ResourceKey, r.Ordinal = k, noOrdinal
	r.Body = spec.Aliasing.Rename(target.Body, k.Name)
	r.Provenance = slices.Clone(target.Provenance)
	for _, kind := range spec.Feeds {
		b := Basis{Kind: kind, Need: NeedStrict, Read: true}
		if row := s.Kind(kind); row != nil && row.Frontier.Observed {
			b.Known, b.Version = true, row.Events
		}
		r.Provenance = r.merge(b)
	}
	return &r
}

// Candidates gives the keys of the resources that may answer for one that is not
// there.
func (s *Snapshot) Candidates(k ResourceKey) []ResourceKey {
	spec := s.Type(k.Type)
	if spec == nil || spec.Aliasing == nil {
		return nil
	}
	var out []ResourceKey
	for _, name := range spec.Aliasing.Candidates(k.Name) {
		out = append(out, ResourceKey{k.Type, name})
	}
	return out
}

// present reports whether there is a resource, or an alias.
func (s *Snapshot) present(k ResourceKey) bool {
	return s.Resource(k) != nil || slices.ContainsFunc(s.Candidates(k), func(c ResourceKey) bool { return s.Resource(c) != nil })
}

// ProveAlias proves that a name has no resource of its own. What a client holds under
// the name may be taken back then: it is a copy of what it can ask for again, so
// nothing is said about the absence of anything else.
func (s *Snapshot) ProveAlias(k ResourceKey) Proof {
	if r := s.Resolve(k); r == nil || !r.Alias() {
		return Proof{}
	}
	return Proof{key: k, revision: s.revision}
}
