package client

import "slices"

// state is what a client holds and asks for.
type state struct {
	remember bool
	held     [numTypes]set
	asked    [numTypes]counts // for types that are asked for by name
	refs     [numTypes][]*references
	versions [numTypes]map[uint32]string // only of those that remember
}

// set of small numbers.
type set struct {
	words []uint64
	count int
}

func (s *set) has(i uint32) bool {
	w := int(i / 64)
	return w < len(s.words) && s.words[w]&(1<<(i%64)) != 0
}

func (s *set) put(i uint32, in bool) {
	if s.has(i) == in {
		return
	}
	w := int(i / 64)
	if w >= len(s.words) {
		s.words = append(s.words, make([]uint64, w+1-len(s.words))...)
	}
	s.words[w] ^= 1 << (i % 64)
	if in {
		s.count++
	} else {
		s.count--
	}
}

// counts how many resources ask for each.
type counts struct{ n []uint16 }

func (c *counts) add(i uint32, by int) uint16 {
	if int(i) >= len(c.n) {
		c.n = append(c.n, make([]uint16, int(i)+1-len(c.n))...)
	}
	c.n[i] = uint16(int(c.n[i]) + by) //nolint:gosec // never below 0: each reference was counted
	return c.n[i]
}

// asks are the names to subscribe to and to unsubscribe from, by type.
type asks struct{ more, less [numTypes][]uint32 }

func (a *asks) any(t Type) bool { return len(a.more[t])+len(a.less[t]) > 0 }

// take stores a resource; what it refers to in place of what it referred to
// before changes what is asked for.
func (s *state) take(k Key, version []byte, refs *references, a *asks) {
	s.held[k.Type].put(k.ID, true)
	if s.remember {
		if s.versions[k.Type] == nil {
			s.versions[k.Type] = map[uint32]string{}
		}
		s.versions[k.Type][k.ID] = string(version)
	}
	s.refer(k, refs, a)
}

// drop forgets a resource.
func (s *state) drop(k Key, a *asks) {
	s.held[k.Type].put(k.ID, false)
	delete(s.versions[k.Type], k.ID)
	s.refer(k, none, a)
}

func (s *state) refer(k Key, refs *references, a *asks) {
	if refs == nil {
		return
	}
	list := s.refs[k.Type]
	if int(k.ID) >= len(list) {
		list = append(list, make([]*references, int(k.ID)+1-len(list))...)
		s.refs[k.Type] = list
	}
	before := list[k.ID]
	if before == refs {
		return
	}
	list[k.ID] = refs
	for _, r := range refs.keys {
		if s.asked[r.Type].add(r.ID, 1) == 1 {
			a.more[r.Type] = append(a.more[r.Type], r.ID)
		}
	}
	if before == nil {
		return
	}
	for _, r := range before.keys {
		if s.asked[r.Type].add(r.ID, -1) > 0 {
			continue
		}
		// Asked for and given up in the same breath: as if nothing had been.
		if i := slices.Index(a.more[r.Type], r.ID); i >= 0 {
			a.more[r.Type] = slices.Delete(a.more[r.Type], i, i+1)
			continue
		}
		a.less[r.Type] = append(a.less[r.Type], r.ID)
		s.held[r.Type].put(r.ID, false)
		delete(s.versions[r.Type], r.ID)
	}
}
