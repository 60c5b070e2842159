package admin

import (
	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

func (s *Server) holders(keys []index.ResourceKey) map[index.ResourceKey][]delta.Holder {
	if s.o.Holders == nil || len(keys) == 0 {
		return nil
	}
	return s.o.Holders(keys)
}

func (s *Server) viewResource(snap *index.Snapshot, k index.ResourceKey, holders []delta.Holder) ResourceView {
	v := ResourceView{ResourceKey: k, State: resourceNone, Envoys: []HolderView{}}
	live := snap.Resource(k)
	if live != nil {
		v.describe(snap, live, live.Provenance)
		v.State, v.Version, v.Modified = resourceLive, snap.Token(live), live.Modified
	} else if t := snap.Tombstone(k); t != nil {
		v.describe(snap, t.Last, t.Provenance)
		v.State, v.Modified = resourceRemoved, t.Removed
	}
	for _, h := range holders {
		v.Envoys = append(v.Envoys, HolderView{h, s.stateOf(&h.Holding, live != nil)})
	}
	return v
}

func (v *ResourceView) describe(snap *index.Snapshot, r *index.Resource, p index.Provenance) {
	v.Maker, v.ClosedWorld = r.Maker, r.ClosedWorld
	v.Sources, _ = first(r.Sources, maxRefs)
	v.Refs, v.OmittedRefs = first(r.Refs, maxRefs)
	for _, b := range p {
		v.Basis = append(v.Basis, viewBasis(snap, b))
	}
}

var needNames = []struct {
	need index.Need
	name string
}{
	{index.NeedMissing, "missing"},
	{index.NeedStrict, "strict"},
	{index.NeedMonotone, "monotone"},
	{index.NeedRemoval, "removal"},
}

func viewBasis(snap *index.Snapshot, b index.Basis) BasisView {
	v := BasisView{Kind: b.Kind, Found: b.Found}
	for _, n := range needNames {
		if b.Need&n.need != 0 {
			v.Needs = append(v.Needs, n.name)
		}
	}
	if b.Known && b.Version > 0 {
		v.Version = b.Version.String()
	}
	row := snap.Kind(b.Kind)
	v.Complete = row != nil && row.Complete()
	return v
}

// stateOf says in a word what an Envoy has of a resource.
func (s *Server) stateOf(h *delta.Holding, live bool) string {
	switch {
	case h.Busy:
		return tooBusy
	case h.Quarantined != nil:
		return rejectedBy
	case (h.Sending || h.Removing) && s.now().Sub(h.Sent) >= slowAnswer:
		return silent
	case h.Sending || h.Removing:
		return awaitsAnswer
	case h.Withheld != nil:
		return withheldFrom
	case h.Pending:
		return awaitsTurn
	case live && h.Current, !live && h.Version == "":
		if !live {
			return holdsNothing
		}
		return holdsCurrent
	case h.Version != "":
		return holdsOlder
	case !h.Asked:
		return notAsked
	default:
		return holdsNothing
	}
}
