package index

import "slices"

func (t *tx) settleReads(id DerivationID, old, now *derivation) {
	if old != nil && slices.Equal(old.reads, now.reads) {
		now.reads = old.reads
		return
	}
	if old != nil {
		t.forgetReads(id, old.reads)
	}
	for _, k := range now.reads {
		set := t.ix.readers[k]
		if set == nil {
			set = map[DerivationID]struct{}{}
			t.ix.readers[k] = set
		}
		set[id] = struct{}{}
	}
}

func (t *tx) forgetReads(id DerivationID, reads []string) {
	for _, k := range reads {
		set := t.ix.readers[k]
		delete(set, id)
		if len(set) == 0 {
			delete(t.ix.readers, k)
		}
	}
}

func (t *tx) settleFacts(old, now *derivation) {
	for i := range now.facts {
		f := &now.facts[i]
		if prev := t.fact(f.Key); prev != nil && prev.Digest == f.Digest && prev.Provenance.sameNeeds(f.Provenance) {
			// Nobody need run again; who runs anyway gets the newer versions.
			if !equalProvenance(prev.Provenance, f.Provenance) {
				t.put(tableFacts, f)
			}
			continue
		}
		t.put(tableFacts, f)
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
		t.delete(tableFacts, &old.facts[i])
		t.touchFact(key)
	}
}

func (t *tx) touchFact(key string) {
	t.touch(readFact(key))
	for i := range len(key) {
		if key[i] == '/' {
			t.touch(readForm(key[:i]))
			return
		}
	}
}

func (t *tx) settleDemands(id DerivationID, old, now *derivation) {
	for _, d := range now.demands {
		t.demand(id, d)
	}
	if old == nil {
		return
	}
	for _, d := range old.demands {
		if slices.ContainsFunc(now.demands, func(x demand) bool { return x.id == d.id }) {
			continue
		}
		set := t.ix.demanded[d.id]
		delete(set.by, id)
		if len(set.by) == 0 {
			delete(t.ix.demanded, d.id)
			t.release(d.id)
		}
	}
}

// demand counts a demander. What is demanded runs when it is new, or when a
// demander adds a kind that decides whether it is wanted.
func (t *tx) demand(by DerivationID, d demand) {
	set := t.ix.demanded[d.id]
	if set == nil {
		set = &demanders{param: d.param, by: map[DerivationID]struct{}{}}
		t.ix.demanded[d.id] = set
		t.wake(d.id)
	}
	set.by[by] = struct{}{}
	merged := append(Provenance(nil), set.basis...).mergeAll(d.basis)
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

func sortedKeys(m map[string]struct{}) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
