package admin

import "github.com/holdfast-xds/holdfast/index"

// resourceCounts gives the numbers of resources that a snapshot has.
type resourceCounts struct{}

func (resourceCounts) of(snap *index.Snapshot, types []index.TypeSpec) []TypeCount {
	out := make([]TypeCount, 0, len(types))
	for _, t := range types {
		n := TypeCount{Type: t.URL}
		n.Resources, n.Tombstones = snap.Count(t.URL)
		out = append(out, n)
	}
	return out
}
