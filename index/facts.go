package index

import (
	"maps"
	"slices"
	"strings"
)

// facts are what derivations left for others. Only the writer reads them.
type facts struct {
	byKey map[string]*Fact
	forms map[string]*factForm
}

// factForm are the facts of one form.
type factForm struct {
	facts map[*Fact]struct{}
	// sorted by key; nil when it has to be made anew.
	sorted []*Fact
}

func newFacts() *facts { return &facts{byKey: map[string]*Fact{}, forms: map[string]*factForm{}} }

func (f *facts) put(x *Fact) {
	f.delete(x.Key)
	f.byKey[x.Key] = x
	form := f.forms[formOf(x.Key)]
	if form == nil {
		form = &factForm{facts: map[*Fact]struct{}{}}
		f.forms[formOf(x.Key)] = form
	}
	form.facts[x], form.sorted = struct{}{}, nil
}

func (f *facts) delete(key string) {
	x := f.byKey[key]
	if x == nil {
		return
	}
	delete(f.byKey, key)
	form := f.forms[formOf(key)]
	delete(form.facts, x)
	form.sorted = nil
}

// of gives the facts of a form, ordered by key.
func (f *facts) of(form string) []*Fact {
	x := f.forms[form]
	if x == nil {
		return nil
	}
	if x.sorted == nil {
		x.sorted = slices.SortedFunc(maps.Keys(x.facts), func(a, b *Fact) int { return strings.Compare(a.Key, b.Key) })
	}
	return x.sorted
}

// formOf gives what stands before the first slash of a fact's key.
func formOf(key string) string {
	form, _, _ := strings.Cut(key, "/")
	return form
}
