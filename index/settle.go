package index

import "slices"

func (t *tx) settleFacts(old, now *derivation) {
	for i := range now.facts {
		f := &now.facts[i]
		if prev := t.fact(f.Key); prev != nil && prev.Digest == f.Digest && prev.Provenance.sameNeeds(f.Provenance) {
			// Nobody need run again; who runs anyway gets the newer versions.
			if !equalProvenance(prev.Provenance, f.Provenance) {
				t.ix.facts.put(f)
			}
			continue
		}
		t.ix.facts.put(f)
		t.touchFact(f.Key)
	}
	if old == nil {
		return
	}
	for i := range old.facts {
		key := old.facts[i].Key
		if slices.ContainsFunc(now.facts, func(f Fact) bool { return f.Key == key }) {
			continue
		}
		t.ix.facts.delete(key)
		t.touchFact(key)
	}
}

func (t *tx) touchFact(key string) {
	t.touch(readFact(key))
	t.touch(readFacts(formOf(key)))
}

func (t *tx) settleDemands(id DerivationID, old, now *derivation, demands []demand) {
	if len(demands) > 0 {
		now.demands = make([]DerivationID, 0, len(demands))
	}
	for _, d := range demands {
		now.demands = append(now.demands, d.id)
		t.demand(id, d)
	}
	if old == nil {
		return
	}
	for _, x := range old.demands {
		if slices.Contains(now.demands, x) {
			continue
		}
		if set := t.ix.demanded[x]; set.by.remove(id) {
			delete(t.ix.demanded, x)
			t.release(x)
		}
	}
}

// demand counts a demander. What is demanded runs when it is new, or when a
// demander adds a kind that decides whether it is wanted.
func (t *tx) demand(by DerivationID, d demand) {
	set := t.ix.demanded[d.id]
	if set == nil {
		set = &demanders{param: d.param, basis: d.basis}
		t.ix.demanded[d.id] = set
		t.wake(d.id)
	}
	set.by.add(by)
	if equalProvenance(set.basis, d.basis) {
		return
	}
	merged := slices.Clone(set.basis).mergeAll(d.basis)
	if !merged.sameNeeds(set.basis) {
		t.wake(d.id)
	}
	set.basis = merged
}

func (d *derivation) said() []Problem {
	if d == nil {
		return nil
	}
	return d.problems
}

// newProblems gives what the derivations that ran say now and nobody of them said
// before the transaction.
func (t *tx) newProblems() []Problem {
	old := map[Problem]struct{}{}
	for _, said := range t.before {
		for _, p := range said {
			old[p] = struct{}{}
		}
	}
	var out []Problem
	seen := map[DerivationID]struct{}{}
	for _, id := range t.ran {
		if _, dup := seen[id]; dup {
			continue
		}
		seen[id] = struct{}{}
		for _, p := range t.derivation(id).said() {
			if _, known := old[p]; !known {
				old[p] = struct{}{}
				out = append(out, p)
			}
		}
	}
	return out
}
