package index

// replace makes a kind hold exactly what a complete list holds. What the list lacks
// is gone: the list is the proof.
func (t *tx) replace(c Replace) {
	t.removeUnlisted(c)
	back := t.rolledBack(c)
	for _, o := range c.Objects {
		if back {
			t.keep(t.object(o.ObjectKey), o) // equal versions may be of different histories
			continue
		}
		t.upsert(o, true)
	}
	t.setKind(c.Kind, func(row *KindRow) {
		row.Frontier = Frontier{Observed: true, Version: c.Version}
		row.Events, row.Listed = c.Version, c.Version
	})
	if back {
		t.rederive(c.Kind, c.Version)
	}
}

func (t *tx) removeUnlisted(c Replace) {
	listed := make(map[ObjectKey]struct{}, len(c.Objects))
	for _, o := range c.Objects {
		listed[o.ObjectKey] = struct{}{}
	}
	var gone []ObjectKey
	for o := range t.tables.objects(c.Kind) {
		if _, ok := listed[o.ObjectKey]; !ok {
			gone = append(gone, o.ObjectKey)
		}
	}
	for _, k := range gone {
		t.remove(k)
	}
}

// rolledBack: the list is older than what the index holds. The store of the API
// server was put back to an earlier state.
func (t *tx) rolledBack(c Replace) bool {
	row := t.kind(c.Kind)
	return row != nil && row.Frontier.Observed && c.Version < row.Frontier.Version
}

// rederive runs every derivation that rests on a version above v of the kind again:
// that version is of a future which no longer exists, and no frontier would ever
// reach it.
func (t *tx) rederive(k Kind, v ResourceVersion) {
	for _, set := range t.ix.demanded {
		set.basis = set.basis.capped(k, v)
	}
	for _, d := range t.ix.derivations {
		if d.restsOn.Of(k).Version > v {
			t.wake(d.id)
		}
	}
}
