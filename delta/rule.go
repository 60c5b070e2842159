package delta

import "github.com/holdfast-xds/holdfast/index"

// Action is what the rule says about one client and one resource.
type Action uint8

// The actions.
const (
	Nothing Action = iota
	Send
	Remove
	Withhold
)

// Verdict is the rule's answer.
type Verdict struct {
	Action   Action
	Resource *index.Resource // to send, or withheld from being sent
	Proof    index.Proof     // of Remove
	Missing  []index.Lack    // of Withhold
}

// Excused is the set of kinds that a client which holds nothing need not wait for
// any longer, since they keep failing. It is empty as a rule.
type Excused func(index.Kind) bool

// Decide is the rule of this project. held is what the client holds of the
// resource; nil is nothing. It has no clock and no state:
//
//	client holds   index has        decision
//	nothing        a resource       send, when nothing in it rests on an unproven absence;
//	                                closed-world resources: when all their needs are complete
//	same digest    a resource       nothing
//	other digest   a resource       send, when no kind of the held version lags or could shrink it
//	something      no resource      remove, with a proof
//	nothing        no resource      "does not exist", with a proof
func Decide(s *index.Snapshot, k index.ResourceKey, held *index.Token, excused Excused) Verdict {
	r := s.Resolve(k)
	switch {
	case r == nil && held == nil:
		return removal(s.ProveNonexistent(k))
	case r == nil:
		return removal(s.ProveAbsent(k, *held))
	case held == nil:
		return sending(r, firstLacks(s, r, excused))
	case held.Digest == r.Digest && !held.Formless:
		return Verdict{Action: Nothing, Resource: r}
	default:
		return sending(r, changeLacks(s, r, held))
	}
}

func removal(p index.Proof, missing []index.Lack) Verdict {
	if !p.Valid() {
		return Verdict{Action: Withhold, Missing: missing}
	}
	return Verdict{Action: Remove, Proof: p}
}

func sending(r *index.Resource, missing []index.Lack) Verdict {
	if len(missing) > 0 {
		return Verdict{Action: Withhold, Resource: r, Missing: missing}
	}
	return Verdict{Action: Send, Resource: r}
}

// firstLacks: a client that holds nothing is given what was found. What rests on
// something not found waits until the kind is complete; a closed-world resource
// says "and nothing else" and waits for everything it needs.
func firstLacks(s *index.Snapshot, r *index.Resource, excused Excused) []index.Lack {
	ways := index.NeedMissing
	if r.ClosedWorld {
		ways |= index.NeedStrict | index.NeedMonotone
	}
	lacks := s.Incomplete(r.Needs(ways))
	if excused == nil {
		return lacks
	}
	kept := lacks[:0]
	for _, l := range lacks {
		if !excused(l.Kind) {
			kept = append(kept, l)
		}
	}
	return kept
}

// changeLacks: what a client holds is replaced only by something that rests on
// versions at least as new, and that lacks nothing which merely was not seen.
func changeLacks(s *index.Snapshot, r *index.Resource, held *index.Token) []index.Lack {
	lacks := s.Incomplete(r.Needs(index.NeedMissing | index.NeedStrict))
	if held.Foreign {
		// Nothing is known about the held version: it may rest on any kind.
		lacks = union(lacks, s.Incomplete(s.Type(r.Type).Feeds))
	}
	for _, h := range held.Vector {
		if row := s.Kind(h.Kind); row != nil && !reaches(row, r.Of(h.Kind), h) {
			lacks = union(lacks, []index.Lack{{Kind: h.Kind, Frontier: row.Frontier, Held: h.Version}})
		}
	}
	return lacks
}

// reaches: the new version is at least as new as the held one, as far as one
// kind goes.
func reaches(row *index.KindRow, now index.Basis, h index.Held) bool {
	newEnough := now.Found && now.Version >= h.Version
	switch {
	case row.Frontier.Reaches(h.Version):
		return true
	case !now.Read && now.Need == index.NeedRemoval:
		return true // the kind decides whether it is wanted, not what it is
	case now.Need == 0 && newEnough:
		return true // rests on the objects found alone, and they are new enough
	case h.Absent && now.Need&(index.NeedMissing|index.NeedStrict) == 0 && (!now.Found || newEnough):
		// Held has nothing of the kind, so nothing of it can be lost. What is found
		// now and older than that was gone by then: a replica that lags.
		return true
	default:
		return h.Absent && row.Complete() && !row.Frontier.Observed
	}
}

func union(a, b []index.Lack) []index.Lack {
next:
	for _, l := range b {
		for i := range a {
			if a[i].Kind == l.Kind {
				a[i].Held = max(a[i].Held, l.Held)
				continue next
			}
		}
		a = append(a, l)
	}
	return a
}
