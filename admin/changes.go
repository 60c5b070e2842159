package admin

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/index"
)

// changeLog keeps the last changes of the index with the time at which they were
// noticed.
//
// Invariant: it holds at most maxKept changes of at most maxKeptNames names each.
type changeLog struct {
	index *index.Index
	now   func() time.Time

	mu   sync.Mutex
	seen index.Revision
	ring []Change
	next int // the oldest, once the ring is full
}

const (
	maxKept      = 1024
	maxKeptNames = 64
)

// follow takes each change in as it comes, until ctx ends.
func (c *changeLog) follow(ctx context.Context) {
	for {
		snap := c.index.Snapshot()
		c.catchUp(snap)
		select {
		case <-ctx.Done():
			return
		case <-c.index.Changed(snap.Revision()):
		}
	}
}

// catchUp takes in what the snapshot's log has beyond what is known. Revisions that
// the log no longer has are left out.
func (c *changeLog) catchUp(snap *index.Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if snap.Revision() <= c.seen {
		return
	}
	entries, _ := snap.Changes(max(c.seen, snap.LogStart()))
	c.seen = snap.Revision()
	at := c.now()
	for _, e := range entries {
		if len(e.Changed) > 0 {
			c.put(viewChange(e, at))
		}
	}
}

func viewChange(e index.LogEntry, at time.Time) Change {
	out := Change{Revision: e.Revision, At: at, Count: len(e.Changed), Resources: e.Changed[:min(len(e.Changed), maxKeptNames)]}
	if e.Cause.HasTraceID() {
		out.Trace = e.Cause.TraceID().String()
	}
	return out
}

func (c *changeLog) put(x Change) {
	if len(c.ring) < maxKept {
		c.ring = append(c.ring, x)
		return
	}
	c.ring[c.next] = x
	c.next = (c.next + 1) % maxKept
}

// each calls f with each change, newest first, until f says false.
func (c *changeLog) each(f func(*Change) bool) {
	c.catchUp(c.index.Snapshot())
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.ring {
		if !f(&c.ring[(c.next-1-i+2*len(c.ring))%len(c.ring)]) {
			return
		}
	}
}

// of gives the last changes of any of the resources, newest first, with those
// resources alone.
func (c *changeLog) of(keys map[index.ResourceKey]bool, most int) []Change {
	var out []Change
	c.each(func(x *Change) bool {
		var touched []index.ResourceKey
		for _, k := range x.Resources {
			if keys[k] {
				touched = append(touched, k)
			}
		}
		if touched != nil {
			found := *x
			found.Resources = touched
			out = append(out, found)
		}
		return len(out) < most
	})
	return out
}

// joined gives the newest changes. Those that follow each other in the same trace are
// one: a list comes in many parts.
func (c *changeLog) joined(most int) []Change {
	var out []Change
	c.each(func(x *Change) bool {
		if n := len(out); n > 0 && x.Trace != "" && out[n-1].Trace == x.Trace {
			out[n-1].Count += x.Count
			out[n-1].Resources = x.Resources
			return true
		}
		if len(out) == most {
			return false
		}
		out = append(out, *x)
		return true
	})
	return out
}

// traceKept reports whether a trace can still be shown.
func (s *Server) traceKept(id string) bool {
	key, err := trace.TraceIDFromHex(id)
	return err == nil && s.o.Traces != nil && s.o.Traces.Has(key)
}
