package delta

import (
	"slices"

	"github.com/holdfast-xds/holdfast/index"
)

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

// maxLent is how many aliases a client has at a time. There are ever so many ways to
// write a name, and an Envoy keeps each that it was given (25 KB); the oldest is taken
// back, and asked for again when it is needed.
const maxLent = 256

// lend records that the client has an alias, and takes back the oldest when there
// are too many.
func (s *Stream) lend(t *subscription, r *index.Resource) {
	if !r.Alias() || slices.Contains(t.lent, r.Name) {
		return
	}
	t.lent = append(t.lent, r.Name)
	if len(t.lent) > maxLent {
		t.recalled[t.lent[0]] = struct{}{}
		t.want(t.lent[0], ifChanged)
		t.lent = t.lent[1:]
	}
}

// unlend: the client doesn't ask for the name any more.
func (t *subscription) unlend(name string) {
	delete(t.recalled, name)
	if i := slices.Index(t.lent, name); i >= 0 {
		t.lent = slices.Delete(t.lent, i, i+1)
	}
}

// recall takes back an alias that is to be; row is what answers for it now.
func (s *Stream) recall(t *subscription, row *index.Resource, d *decided) bool {
	if row == nil || !row.Alias() {
		return false
	}
	if _, recalled := t.recalled[row.Name]; !recalled {
		return false
	}
	d.remove = append(d.remove, s.snap.ProveAlias(row.ResourceKey))
	return true
}

func aliasingOf(s *index.Snapshot, typeURL string) *index.Aliasing {
	if spec := s.Type(typeURL); spec != nil {
		return spec.Aliasing
	}
	return nil
}
