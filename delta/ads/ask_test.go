package ads

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// idle is a session whose loop is left out: nobody answers, or answer does.
func idle(s *Server, node string) *session {
	s.next++
	x := &session{server: s, id: s.next, named: true, ask: make(chan func()), done: make(chan struct{})}
	x.last.Store(&delta.StreamStatus{ID: x.id, Node: node})
	s.streams[x.id] = x
	return x
}

func newIdleServer(t *testing.T) *Server {
	t.Helper()
	s, err := New(indextest.New(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A stream that is in the middle of a long step is told of as it last was, at once;
// one that has ended is not told of.
func TestNobodyWaitsForABusyStream(t *testing.T) {
	s := newIdleServer(t)
	idle(s, "edge-1")
	close(idle(s, "edge-2").done)
	began := time.Now()
	st := s.Status()
	if len(st) != 1 || !st[0].Busy || st[0].Node != "edge-1" {
		t.Errorf("%+v", st)
	}
	k := index.ResourceKey{Type: delta.Cluster, Name: "x"}
	if h := s.Holders([]index.ResourceKey{k})[k]; len(h) != 1 || !h[0].Busy || h[0].Node != "edge-1" {
		t.Errorf("%+v", h)
	}
	if took := time.Since(began); took > 20*atOnce {
		t.Errorf("it took %v", took)
	}
}

// A summary that took long is good for a while, one that did not is made anew.
func TestSummariesRest(t *testing.T) {
	s := newIdleServer(t)
	x := idle(s, "edge-1")
	x.machine = delta.NewStream(s.ix.Snapshot(), time.Now(), delta.Options{})
	if x.report(); x.justTold() {
		t.Error("a summary of nothing rests")
	}
	x.rests.Store(time.Now().Add(time.Hour).UnixNano())
	if st := s.Status(); len(st) != 1 || st[0].Busy {
		t.Errorf("what was just told is asked for again: %+v", st)
	}
}

// An Envoy that left is remembered until its node is back; of several times, the last.
func TestDeparted(t *testing.T) {
	s := newIdleServer(t)
	for range 2 * keptDeparted {
		for _, node := range []string{"edge-1", "edge-2"} {
			x := idle(s, node)
			x.machine = delta.NewStream(s.ix.Snapshot(), time.Now(), delta.Options{})
			x.machine.Request(time.Now(), &discoveryv3.DeltaDiscoveryRequest{TypeUrl: delta.Cluster, Node: &corev3.Node{Id: node}})
			s.mu.Lock()
			delete(s.streams, x.id)
			s.depart(x)
			s.mu.Unlock()
		}
	}
	if len(s.departed) != keptDeparted {
		t.Errorf("%d are remembered", len(s.departed))
	}
	idle(s, "edge-2")
	got := s.Departed()
	if len(got) != 1 || got[0].ID != s.next-2 {
		t.Errorf("%+v, of %d", got, s.next)
	}
}
