package delta

import "github.com/holdfast-xds/holdfast/index"

// Names that other resources answer for (index.Aliasing). A client asks for them
// like for any other, and holds them under the name that it asked for; to the
// machine they are names without a row of their own, so what the client has of them
// is never "current", but an entry of others. What may answer for a name is
// remembered, so that the name is decided anew when any of that comes, changes or
// goes.

// miss records an explicit name that has no row of its own.
func (t *subscription) miss(name string) {
	t.unknown[name] = struct{}{}
	for _, c := range t.candidates(name) {
		if t.aliases[c] == nil {
			t.aliases[c] = map[string]struct{}{}
		}
		t.aliases[c][name] = struct{}{}
	}
}

// unmiss: the name has a row now, or is not asked for any more.
func (t *subscription) unmiss(name string) {
	if _, ok := t.unknown[name]; !ok {
		return
	}
	delete(t.unknown, name)
	for _, c := range t.candidates(name) {
		delete(t.aliases[c], name)
		if len(t.aliases[c]) == 0 {
			delete(t.aliases, c)
		}
	}
}

func (t *subscription) candidates(name string) []string {
	if t.aliasing == nil {
		return nil
	}
	return t.aliasing.Candidates(name)
}

// changedAliases takes in that a resource changed that may answer for other names.
func (s *Stream) changedAliases(t *subscription, target string, c origin) {
	for name := range t.aliases[target] {
		now := s.snap.Resolve(t.key(name))
		if q, ok := t.quarantine[name]; ok && (now == nil || now.Digest != q.digest) {
			delete(t.quarantine, name)
		}
		t.want(name, ifChanged)
		t.because(name, c)
	}
}

func aliasingOf(s *index.Snapshot, typeURL string) *index.Aliasing {
	if spec := s.Type(typeURL); spec != nil {
		return spec.Aliasing
	}
	return nil
}
