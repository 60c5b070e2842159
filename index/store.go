package index

import (
	"fmt"
	"slices"
)

// settleResources stores the drafts and buries what is no longer made. The
// provenance of the run as a whole is that of "no longer made".
func (t *tx) settleResources(id DerivationID, old, now *derivation, r *Reader) {
	if len(r.drafts) > 0 {
		now.makes = make([]ResourceKey, 0, len(r.drafts))
	}
	for _, d := range r.drafts {
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
			t.bury(k, r.prov)
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
		t.putResource(row)
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
	t.putResource(row)
}

func (t *tx) bury(k ResourceKey, prov Provenance) {
	last := t.resource(k)
	if last == nil {
		return
	}
	all := append(Provenance(nil), last.Provenance...)
	grave := &Tombstone{Last: last, Provenance: all.mergeAll(prov), Removed: t.revision}
	t.deleteResource(last)
	t.putTombstone(grave)
	t.changed[k] = struct{}{}
	o := t.ix.ordinals[k.Type]
	o.live--
	o.dead++
	o.graves = append(o.graves, grave)
}
