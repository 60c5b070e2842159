package admin

import (
	"sync"

	"github.com/holdfast-xds/holdfast/delta"
)

// streamTotals adds up the streams' counters. A stream's counters end with it,
// so what was last seen of it is kept: the sums never go down.
type streamTotals struct {
	source func() []delta.StreamStatus

	mu    sync.Mutex
	live  map[uint64][]delta.TypeStatus
	ended map[string]totals // by type URL
}

type totals struct{ responses, resources, removed, bytes, acks, nacks uint64 }

func (t totals) plus(s delta.TypeStatus) totals {
	t.responses += s.Responses
	t.resources += s.Resources
	t.removed += s.Removed
	t.bytes += s.Bytes
	t.acks += s.Acks
	t.nacks += s.Nacks
	return t
}

func newStreamTotals(source func() []delta.StreamStatus) *streamTotals {
	return &streamTotals{source: source, live: map[uint64][]delta.TypeStatus{}, ended: map[string]totals{}}
}

// read gives the streams as they are, and keeps the counters of those that went.
func (t *streamTotals) read() []delta.StreamStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readLocked()
}

func (t *streamTotals) readLocked() []delta.StreamStatus {
	streams := t.source()
	live := make(map[uint64][]delta.TypeStatus, len(streams))
	for _, s := range streams {
		live[s.ID] = s.Types
	}
	for id, types := range t.live {
		if _, still := live[id]; still {
			continue
		}
		for _, x := range types {
			t.ended[x.Type] = t.ended[x.Type].plus(x)
		}
	}
	t.live = live
	return streams
}

// sums gives the streams and the totals by type URL, of one moment.
func (t *streamTotals) sums() ([]delta.StreamStatus, map[string]totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	streams := t.readLocked()
	out := make(map[string]totals, len(t.ended))
	for url, x := range t.ended {
		out[url] = x
	}
	for _, s := range streams {
		for _, x := range s.Types {
			out[x.Type] = out[x.Type].plus(x)
		}
	}
	return streams, out
}
