package index

import "slices"

// unbury removes a resource's tombstone, if there is one, and gives its ordinal.
func (t *tx) unbury(k ResourceKey) uint32 {
	o := t.ix.ordinals[k.Type]
	o.live++
	if grave := t.tombstone(k); grave != nil {
		t.deleteTombstone(grave)
		o.dead--
		return grave.Last.Ordinal
	}
	return o.take()
}

// sweep deletes the tombstones that every reader has passed and whose needs are
// complete: before that the removal may still be withheld, for the kinds that the
// tombstone names.
func (t *tx) sweep(slowest Revision) {
	for _, o := range t.ix.ordinals {
		if t.completeness {
			o.unproven = slices.DeleteFunc(o.unproven, func(grave *Tombstone) bool { return t.sweepOne(o, grave) })
		}
		n := 0
		for _, grave := range o.graves {
			if grave.Removed > slowest {
				break
			}
			n++
			if !t.sweepOne(o, grave) {
				o.unproven = append(o.unproven, grave)
			}
		}
		o.graves = o.graves[n:]
	}
}

// sweepOne reports whether nothing is left of the tombstone.
func (t *tx) sweepOne(o *ordinals, grave *Tombstone) bool {
	if t.tombstone(grave.Last.ResourceKey) != grave {
		return true // unburied
	}
	for _, b := range grave.Provenance {
		if row := t.kind(b.Kind); b.Need != 0 && (row == nil || !row.Complete()) {
			return false
		}
	}
	t.deleteTombstone(grave)
	o.dead--
	o.free = append(o.free, grave.Last.Ordinal)
	return true
}

// ordinals hands out the small numbers of one resource type. Owned by the writer.
type ordinals struct {
	counts
	next   uint32
	free   []uint32
	graves []*Tombstone // oldest first; some may have been unburied
	// unproven graves: every reader has passed them, but their needs are not complete.
	unproven []*Tombstone
}

func (o *ordinals) take() uint32 {
	if n := len(o.free); n > 0 {
		x := o.free[n-1]
		o.free = o.free[:n-1]
		return x
	}
	o.next++
	return o.next - 1
}
