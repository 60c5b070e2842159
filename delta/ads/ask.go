package ads

import (
	"slices"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// Holders tells of each connected client, in the order of connecting, what it has
// of each of the resources. Clients that have not asked for a type are left out of
// its list. Each stream answers between two of its steps, for all resources at once.
func (s *Server) Holders(keys []index.ResourceKey) map[index.ResourceKey][]delta.Holder {
	out := make(map[index.ResourceKey][]delta.Holder, len(keys))
	for _, x := range s.open() {
		var list []*delta.Holder
		answered := x.question(func() {
			list = make([]*delta.Holder, len(keys))
			for i, k := range keys {
				if h, ok := x.machine.Holding(k); ok {
					list[i] = &delta.Holder{Stream: x.id, Node: x.machine.Node(), Peer: x.peer, Holding: h}
				}
			}
		})
		for i, h := range list {
			if answered && h != nil {
				out[keys[i]] = append(out[keys[i]], *h)
			}
		}
	}
	return out
}

// Inventory copies everything that a client holds of the given types, by type URL;
// nil when there is no such stream. Types for which it has not asked are left out.
func (s *Server) Inventory(stream uint64, types []string) map[string]*delta.Inventory {
	s.mu.Lock()
	x := s.streams[stream]
	s.mu.Unlock()
	if x == nil {
		return nil
	}
	var out map[string]*delta.Inventory
	x.question(func() {
		out = map[string]*delta.Inventory{}
		for _, url := range types {
			if v := x.machine.Inventory(url); v != nil {
				out[url] = v
			}
		}
	})
	return out
}

// Status tells of every connected client, in the order of connecting.
func (s *Server) Status() []delta.StreamStatus {
	open := s.open()
	out := make([]delta.StreamStatus, 0, len(open))
	for _, x := range open {
		var st delta.StreamStatus
		if x.question(func() { st = x.describe() }) {
			out = append(out, st)
		}
	}
	return out
}

// open gives the sessions in the order of connecting.
func (s *Server) open() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*session, 0, len(s.streams))
	for _, x := range s.streams {
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b *session) int { return int(a.id) - int(b.id) })
	return out
}

// question runs f on the loop, between two steps of the machine, and waits for its
// end; false when the stream has ended.
func (x *session) question(f func()) bool {
	answered := make(chan struct{})
	select {
	case x.ask <- func() { f(); close(answered) }:
		<-answered
		return true
	case <-x.done:
		return false
	}
}

func (x *session) describe() delta.StreamStatus {
	st := x.machine.Summary()
	st.ID, st.Peer = x.id, x.peer
	for i := range st.Types {
		st.Types[i].Bytes = x.bytes[st.Types[i].Type]
	}
	return st
}
