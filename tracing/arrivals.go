package tracing

import (
	"sync"
	"time"
)

// Arrivals remembers when the changes of the last revisions came: a source notes
// it, and whoever sees the end of a change (an Envoy's ACK) asks. It works
// whether or not anything is traced. A nil *Arrivals remembers nothing.
type Arrivals struct {
	mu   sync.Mutex
	ring [arrivals]arrival
}

type arrival struct {
	revision uint64
	at       time.Time
}

// arrivals is how many revisions are remembered. An Envoy that is further behind
// is not measured by what it finally acknowledges, but by its lag.
const arrivals = 1 << 13

// Note says when the oldest change of a revision came.
func (a *Arrivals) Note(revision uint64, at time.Time) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ring[revision%arrivals] = arrival{revision, at}
}

// Of gives when the change of a revision came; false when it is not known.
func (a *Arrivals) Of(revision uint64) (time.Time, bool) {
	if a == nil || revision == 0 {
		return time.Time{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.ring[revision%arrivals]
	return x.at, x.revision == revision
}
