package index

import (
	"fmt"
	"slices"
)

// settleResources stores the drafts and buries what is no longer made. prov is
// the provenance of the run as a whole: that of "no longer made".
func (t *tx) settleResources(id DerivationID, old, now *derivation, prov Provenance) {
	for _, d := range now.drafts {
		k := ResourceKey{d.Type, d.Name}
		if slices.Contains(now.makes, k) {
			panic(fmt.Sprintf("index: derivation %s makes %s twice", id, k))
		}
		now.makes = append(now.makes, k)
		t.store(id, k, d)
	}
	if old == nil {
		return
	}
	for _, k := range old.makes {
		if !slices.Contains(now.makes, k) {
			t.bury(k, prov)
		}
	}
}

func (t *tx) store(id DerivationID, k ResourceKey, d draft) {
	old := t.resource(k)
	if old != nil && old.Maker != id {
		panic(fmt.Sprintf("index: derivations %s and %s both make %s", old.Maker, id, k))
	}
	row := &Resource{
		ResourceKey: k, Body: d.Body, Digest: DigestOf(d.Body), Provenance: d.prov, Refs: d.Refs,
		ClosedWorld: d.ClosedWorld, Sources: d.Sources, Maker: id, Modified: t.revision,
	}
	if old == nil {
		row.Ordinal = t.unbury(k)
		t.put(tableResources, row)
		t.changed[k] = struct{}{}
		return
	}
	row.Ordinal = old.Ordinal
	same := old.Digest == row.Digest && old.sameNeeds(row.Provenance)
	if same {
		row.Body, row.Modified = old.Body, old.Modified
		if equalProvenance(old.Provenance, row.Provenance) && slices.Equal(old.Refs, row.Refs) && slices.Equal(old.Sources, row.Sources) {
			return
		}
	} else {
		t.changed[k] = struct{}{}
	}
	t.put(tableResources, row)
}

func (t *tx) bury(k ResourceKey, prov Provenance) {
	last := t.resource(k)
	if last == nil {
		return
	}
	all := append(Provenance(nil), last.Provenance...)
	grave := &Tombstone{Last: last, Provenance: all.mergeAll(prov), Removed: t.revision}
	t.delete(tableResources, last)
	t.put(tableTombstones, grave)
	t.changed[k] = struct{}{}
	o := t.ix.ordinals[k.Type]
	o.graves = append(o.graves, grave)
}
