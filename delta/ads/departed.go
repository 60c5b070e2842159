package ads

import (
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
)

// keptDeparted is how many clients are remembered that have left.
const keptDeparted = 64

// Departed tells of the last clients that left, the last first. Those that have come
// back are left out.
func (s *Server) Departed() []delta.Departed {
	back := map[string]bool{}
	for _, x := range s.open() {
		back[x.last.Load().Node] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []delta.Departed
	for _, d := range slices.Backward(s.departed) {
		if !back[d.Node] {
			back[d.Node] = true // of a node that came and went, the last time counts
			out = append(out, d)
		}
	}
	return out
}

// depart remembers a client. s.mu is held.
func (s *Server) depart(x *session) {
	if x.machine == nil || !x.named {
		return
	}
	d := x.machine.Depart(time.Now())
	d.ID, d.Peer = x.id, x.peer
	if len(s.departed) == keptDeparted {
		s.departed = slices.Delete(s.departed, 0, 1)
	}
	s.departed = append(s.departed, d)
}
