package delta

import "time"

// Departed is a client whose stream has ended.
type Departed struct {
	ID    uint64    `json:"id"`
	Node  string    `json:"node"`
	Peer  string    `json:"peer"`
	Ended time.Time `json:"ended"`
	// Unanswered is since when it owed an answer; zero when it owed none. A client that
	// is frozen, or cut off, ends like this: its connection is closed when it answers
	// no ping either.
	Unanswered time.Time `json:"unanswered,omitzero"`
}

// Depart tells how a client was when its stream ended.
func (s *Stream) Depart(now time.Time) Departed {
	out := Departed{Node: s.node, Ended: now}
	for _, t := range s.subs {
		if t.inFlight != nil && (out.Unanswered.IsZero() || t.lastSent.Before(out.Unanswered)) {
			out.Unanswered = t.lastSent
		}
	}
	return out
}
