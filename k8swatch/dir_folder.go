package k8swatch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/index"
)

// folder is what is known of a folder: pure state, without I/O.
//
//	put(reading), drop(path) ──▶ take() gives the changes since the last take
//
// Invariant: applied holds, for each key, the object of the first claim (by path
// and position) that has one.
type folder struct {
	files   map[string]*reading
	claims  map[index.ObjectKey][]*claim
	applied map[index.ObjectKey]*index.Object
	// broken has the files of which a part can't be read, lost the kinds of each
	// file's broken documents for which there is no last good object.
	broken map[string]struct{}
	lost   map[string][]index.Kind

	touched  map[index.ObjectKey]struct{}
	problems map[string][]index.Problem // by subject, as last given
	changes  []index.Change             // of problems, not yet taken
}

func newFolder() *folder {
	return &folder{
		files:    map[string]*reading{},
		claims:   map[index.ObjectKey][]*claim{},
		applied:  map[index.ObjectKey]*index.Object{},
		broken:   map[string]struct{}{},
		lost:     map[string][]index.Kind{},
		touched:  map[index.ObjectKey]struct{}{},
		problems: map[string][]index.Problem{},
	}
}

// put replaces what is known of a file.
func (f *folder) put(now *reading) {
	old := f.files[now.path]
	if old != nil {
		now = inherit(now, old)
		f.retract(old)
	}
	f.files[now.path] = now
	f.mend(now.path)
	if now.broken {
		f.broken[now.path] = struct{}{}
	}
	for _, c := range now.claims {
		if c.object == nil {
			f.lost[now.path] = append(f.lost[now.path], c.key.Kind)
			continue
		}
		f.claims[c.key] = insert(f.claims[c.key], c)
		f.touched[c.key] = struct{}{}
	}
	f.report(now.path, now.problems)
}

// inherit gives broken documents the last good object of their key, and a broken
// file all that it no longer shows.
func inherit(now, old *reading) *reading {
	last := map[index.ObjectKey]*claim{}
	for _, c := range old.claims {
		if c.object != nil && last[c.key] == nil {
			last[c.key] = c
		}
	}
	out := *now
	out.claims = nil
	shown := map[index.ObjectKey]struct{}{}
	for _, c := range now.claims {
		if c.object == nil && last[c.key] != nil {
			kept := *c
			kept.object = last[c.key].object
			c = &kept
		}
		shown[c.key] = struct{}{}
		out.claims = append(out.claims, c)
	}
	// A document that can't even be named may be any of those of its kind.
	for _, c := range old.claims {
		_, named := shown[c.key]
		_, unnamed := shown[index.ObjectKey{Kind: c.key.Kind}]
		if c.object != nil && !named && (now.broken || unnamed) {
			kept := *c
			kept.pos = len(out.claims)
			out.claims = append(out.claims, &kept)
		}
	}
	return &out
}

// drop forgets a file that is gone.
func (f *folder) drop(path string) {
	if old := f.files[path]; old != nil {
		f.retract(old)
	}
	delete(f.files, path)
	f.mend(path)
	f.report(path, nil)
}

func (f *folder) mend(path string) {
	delete(f.broken, path)
	delete(f.lost, path)
}

func (f *folder) retract(old *reading) {
	for _, c := range old.claims {
		rest := slices.DeleteFunc(f.claims[c.key], func(x *claim) bool { return x.path == old.path })
		if f.claims[c.key] = rest; len(rest) == 0 {
			delete(f.claims, c.key)
		}
		f.touched[c.key] = struct{}{}
	}
}

func insert(claims []*claim, c *claim) []*claim {
	at, _ := slices.BinarySearchFunc(claims, c, func(a, b *claim) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.pos, b.pos))
	})
	return slices.Insert(claims, at, c)
}

// report sets the problems of one subject.
func (f *folder) report(subject string, list []index.Problem) {
	if slices.Equal(comparable(f.problems[subject]), comparable(list)) {
		return
	}
	if f.problems[subject] = list; len(list) == 0 {
		delete(f.problems, subject)
	}
	f.changes = append(f.changes, index.Problems{Subject: subject, List: list})
}

func comparable(list []index.Problem) []string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = fmt.Sprint(p)
	}
	return out
}

// take gives the changes that lead from what was taken before to what is known
// now: objects in a fixed order, then problems.
func (f *folder) take(inOrder bool) []index.Change {
	keys := make([]index.ObjectKey, 0, len(f.touched))
	for k := range f.touched {
		keys = append(keys, k)
	}
	clear(f.touched)
	slices.SortFunc(keys, compareObjects)
	var out []index.Change
	for _, k := range keys {
		claims := f.claims[k]
		f.report("duplicates of "+k.String(), duplicates(k, claims))
		switch old := f.applied[k]; {
		case len(claims) == 0 && old != nil:
			delete(f.applied, k)
			out = append(out, index.Delete{Key: k})
		case len(claims) > 0 && claims[0].object != old:
			f.applied[k] = claims[0].object
			out = append(out, index.Upsert{Object: claims[0].object, InOrder: inOrder})
		}
	}
	out = append(out, f.changes...)
	f.changes = nil
	return out
}

func compareObjects(a, b index.ObjectKey) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func duplicates(k index.ObjectKey, claims []*claim) []index.Problem {
	if len(claims) < 2 {
		return nil
	}
	var others []string
	for _, c := range claims[1:] {
		others = append(others, c.path)
	}
	return []index.Problem{{
		Object: k, Severity: index.Error, Reason: "Duplicate",
		Message: fmt.Sprintf("is in %s and again in %s; the one in %s counts", claims[0].path, strings.Join(slices.Compact(others), ", "), claims[0].path),
	}}
}

// missing says why the list of a kind is not complete, or "". A document with an
// error is missing only from a list that never was complete: afterwards there is
// a last good version of it, or it never was there.
func (f *folder) missing(kind index.Kind, observed bool) string {
	if broken := slices.Sorted(maps.Keys(f.broken)); len(broken) > 0 {
		return f.problems[broken[0]][0].Message
	}
	if observed {
		return ""
	}
	for _, path := range slices.Sorted(maps.Keys(f.lost)) {
		if slices.Contains(f.lost[path], kind) {
			return fmt.Sprintf("%s has a %s that can't be read", path, kind)
		}
	}
	return ""
}

// list gives all objects of a kind, in a fixed order.
func (f *folder) list(kind index.Kind) []*index.Object {
	var out []*index.Object
	for k, o := range f.applied {
		if k.Kind == kind {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *index.Object) int { return compareObjects(a.ObjectKey, b.ObjectKey) })
	return out
}
