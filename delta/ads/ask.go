package ads

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// atOnce is how long a person waits for a stream that is in the middle of a step: at
// tens of thousands of resources a first request takes it half a second.
const atOnce = 40 * time.Millisecond

// Holders tells of each connected client, in the order of connecting, what it has
// of each of the resources. Clients that have not asked for a type are left out of
// its list. Each stream answers between two of its steps, for all resources at once;
// one that does not get to it in time is told of as busy.
func (s *Server) Holders(keys []index.ResourceKey) map[index.ResourceKey][]delta.Holder {
	open := s.open()
	answers := make([][]*delta.Holder, len(open))
	each(open, func(i int, x *session, late <-chan struct{}) {
		list := make([]*delta.Holder, len(keys))
		answered := x.question(late, func() {
			for j, k := range keys {
				if h, ok := x.machine.Holding(k); ok {
					list[j] = &delta.Holder{Stream: x.id, Node: x.machine.Node(), Peer: x.peer, Holding: h}
				}
			}
		})
		if !answered {
			list = x.busy(len(keys))
		}
		answers[i] = list
	})
	out := make(map[index.ResourceKey][]delta.Holder, len(keys))
	for _, list := range answers {
		for j, h := range list {
			if h != nil {
				out[keys[j]] = append(out[keys[j]], *h)
			}
		}
	}
	return out
}

// busy is what a stream has of anything, as long as it has no time to tell; nothing
// when it has ended.
func (x *session) busy(n int) []*delta.Holder {
	select {
	case <-x.done:
		return nil
	default:
	}
	list := make([]*delta.Holder, n)
	for i := range list {
		list[i] = &delta.Holder{Stream: x.id, Node: x.last.Load().Node, Peer: x.peer, Holding: delta.Holding{Busy: true}}
	}
	return list
}

// each calls f for all sessions at the same time, and waits for all; late is closed
// when it is time to give up.
func each(open []*session, f func(i int, x *session, late <-chan struct{})) {
	late := make(chan struct{})
	timer := time.AfterFunc(atOnce, func() { close(late) })
	defer timer.Stop()
	var asking sync.WaitGroup
	for i, x := range open {
		asking.Go(func() { f(i, x, late) })
	}
	asking.Wait()
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
	x.question(nil, func() {
		out = map[string]*delta.Inventory{}
		for _, url := range types {
			if v := x.machine.Inventory(url); v != nil {
				out[url] = v
			}
		}
	})
	return out
}

// Status tells of every connected client, in the order of connecting. What a stream
// is too busy to tell is as it last told.
func (s *Server) Status() []delta.StreamStatus {
	open := s.open()
	answers := make([]*delta.StreamStatus, len(open))
	each(open, func(i int, x *session, late <-chan struct{}) {
		if x.justTold() || x.question(late, x.report) {
			answers[i] = x.last.Load()
			return
		}
		select {
		case <-x.done:
		default:
			st := *x.last.Load()
			st.Busy = true
			answers[i] = &st
		}
	})
	out := make([]delta.StreamStatus, 0, len(open))
	for _, st := range answers {
		if st != nil {
			out = append(out, *st)
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
// end; false when the stream has ended, or when it is late before f has begun. A nil
// late waits for as long as it takes.
func (x *session) question(late <-chan struct{}, f func()) bool {
	answered := make(chan struct{})
	select {
	case x.ask <- func() { f(); close(answered) }:
		<-answered
		return true
	case <-x.done:
		return false
	case <-late:
		return false
	}
}

// A stream from which tens of thousands of resources are withheld takes some
// milliseconds to tell, in which it does nothing else. What it told is then good for
// restFactor times as long, so that those who ask have no more than a tenth of its
// time. A summary that takes less than worthResting is made whenever somebody asks.
const (
	restFactor   = 10
	worthResting = time.Millisecond
)

// report keeps the stream's status. It runs on the loop.
func (x *session) report() {
	began := time.Now()
	st := x.describe()
	x.last.Store(&st)
	now := time.Now()
	if took := now.Sub(began); took >= worthResting {
		x.rests.Store(now.Add(restFactor * took).UnixNano())
	}
}

// justTold: what it told last is recent enough.
func (x *session) justTold() bool { return time.Now().UnixNano() < x.rests.Load() }

func (x *session) describe() delta.StreamStatus {
	st := x.machine.Summary()
	st.ID, st.Peer = x.id, x.peer
	for i := range st.Types {
		st.Types[i].Bytes = x.bytes[st.Types[i].Type]
	}
	return st
}
