package index

// Proof shows that a resource is not there: the resource is absent from the
// snapshot, and every kind involved was observed up to the version that the
// holder relies on. Only Snapshot makes one; only a function that takes one may
// tell a client that something was removed.
type Proof struct {
	key      ResourceKey
	revision Revision
}

// Key of the resource that is proven absent.
func (p Proof) Key() ResourceKey { return p.key }

// Revision at which it was proven.
func (p Proof) Revision() Revision { return p.revision }

// Valid is false for the zero value, which proves nothing.
func (p Proof) Valid() bool { return p.revision > 0 }

// Lack is a kind that keeps something withheld, and why.
type Lack struct {
	Kind Kind `json:"kind"`
	// Frontier of the kind in this snapshot; ⊥ when it is unobserved.
	Frontier Frontier `json:"-"`
	// Held is the version that the frontier must reach; 0 when being observed
	// is all that is needed.
	Held ResourceVersion `json:"held,omitempty"`
}

// ProveAbsent proves that a resource which a client holds under the given token
// is gone. Without a proof it names the kinds that are missing; a resource that
// exists has neither.
//
// For each kind of the held token: frontier(k) ≥ held(k). A kind that discovery
// shows as not served is no evidence against a token that rests on it. For a
// foreign token: every kind that can feed the type is complete. And likewise
// every kind that the tombstone needed. An alias is gone when all of its candidates are.
func (s *Snapshot) ProveAbsent(k ResourceKey, held Token) (Proof, []Lack) {
	if s.present(k) {
		return Proof{}, nil
	}
	var lacks []Lack
	for _, h := range held.Vector {
		if row := s.Kind(h.Kind); !s.reached(row, h) {
			lacks = append(lacks, lackOf(row, h.Kind, h.Version))
		}
	}
	if held.Foreign {
		lacks = s.incomplete(lacks, s.feeds(k.Type))
	}
	for _, c := range append(s.Candidates(k), k) {
		if t := s.Tombstone(c); t != nil {
			lacks = s.incomplete(lacks, t.Needs(NeedMissing|NeedStrict|NeedMonotone|NeedRemoval))
		}
	}
	return s.conclude(k, lacks)
}

// ProveNonexistent proves for a client that holds nothing, but asks by name,
// that a resource does not exist: every kind that can feed the type is complete.
func (s *Snapshot) ProveNonexistent(k ResourceKey) (Proof, []Lack) {
	if s.present(k) {
		return Proof{}, nil
	}
	return s.conclude(k, s.incomplete(nil, s.feeds(k.Type)))
}

// Incomplete gives those of the kinds that are not complete.
func (s *Snapshot) Incomplete(kinds []Kind) []Lack { return s.incomplete(nil, kinds) }

func (s *Snapshot) conclude(k ResourceKey, lacks []Lack) (Proof, []Lack) {
	if len(lacks) > 0 {
		return Proof{}, lacks
	}
	return Proof{key: k, revision: s.revision}, nil
}

func (s *Snapshot) reached(row *KindRow, h Held) bool {
	if row == nil {
		return false
	}
	// Nothing of the kind was found, and the API server does not serve it: that
	// token was not made from the kind's objects.
	if h.Absent && row.absent() {
		return true
	}
	return row.Frontier.Reaches(h.Version)
}

func (s *Snapshot) incomplete(lacks []Lack, kinds []Kind) []Lack {
next:
	for _, k := range kinds {
		row := s.Kind(k)
		if row != nil && row.Complete() {
			continue
		}
		for _, l := range lacks {
			if l.Kind == k {
				continue next
			}
		}
		lacks = append(lacks, lackOf(row, k, 0))
	}
	return lacks
}

func (s *Snapshot) feeds(typeURL string) []Kind {
	if t := s.index.types[typeURL]; t != nil {
		return t.Feeds
	}
	return s.index.kinds
}

func lackOf(row *KindRow, k Kind, v ResourceVersion) Lack {
	l := Lack{Kind: k, Held: v}
	if row != nil {
		l.Frontier = row.Frontier
	}
	return l
}
