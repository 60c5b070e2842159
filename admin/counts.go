package admin

import (
	"sync"

	"github.com/holdfast-xds/holdfast/index"
)

// resourceCounts counts resources, once for each revision: a page, a scrape and
// a status of the same revision count together.
type resourceCounts struct {
	mu       sync.Mutex
	revision index.Revision
	counts   []TypeCount
}

func (c *resourceCounts) of(snap *index.Snapshot, types []index.TypeSpec) []TypeCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts != nil && c.revision == snap.Revision() {
		return c.counts
	}
	counts := make([]TypeCount, 0, len(types))
	for _, t := range types {
		n := TypeCount{Type: t.URL}
		for range snap.Resources(t.URL) {
			n.Resources++
		}
		for range snap.Tombstones(t.URL) {
			n.Tombstones++
		}
		counts = append(counts, n)
	}
	c.revision, c.counts = snap.Revision(), counts
	return counts
}
