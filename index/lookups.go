package index

import (
	"cmp"
	"slices"
)

// lookups find objects by what Rules.Prepare made of them. Only the writer looks
// objects up, so this is a map of its own rather than an index of the table: a
// row's entry in a table's index takes some 400 bytes.
type lookups map[lookupKey][]*Object

type lookupKey struct {
	kind   Kind
	lookup string
}

// put replaces an object by another version of it; either may be nil.
func (l lookups) put(old, o *Object) {
	if old != nil {
		for _, x := range old.Lookups {
			l.drop(lookupKey{old.Kind, x}, old)
		}
	}
	if o == nil {
		return
	}
	for _, x := range o.Lookups {
		k := lookupKey{o.Kind, x}
		list := l[k]
		i, twice := slices.BinarySearchFunc(list, o, compareObjects)
		if twice {
			continue // the object names the same lookup more than once
		}
		l[k] = slices.Insert(list, i, o)
	}
}

func (l lookups) drop(k lookupKey, o *Object) {
	list := l[k]
	i := slices.Index(list, o)
	if i < 0 {
		return
	}
	if len(list) == 1 {
		delete(l, k)
		return
	}
	l[k] = slices.Delete(list, i, i+1)
}

func compareObjects(a, b *Object) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
