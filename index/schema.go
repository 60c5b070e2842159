package index

import "slices"

// tables are what a snapshot shows, one noun each. What only the writer reads
// (lookups, facts, who read what) is in maps of the Index.
type tables struct {
	objects    []table[objectName, *Object]     // one for each kind
	resources  []table[string, *Resource]       // one for each type, by name
	tombstones []table[string, *Tombstone]      // likewise
	complaints table[DerivationID, *derivation] // those with something to say to people
}

// objectName is an object's key within its kind.
type objectName struct{ namespace, name string }

func (x objectName) less(y objectName) bool {
	if x.namespace != y.namespace {
		return x.namespace < y.namespace
	}
	return x.name < y.name
}

func newTables(kinds []KindSpec, types []TypeSpec) tables {
	t := tables{complaints: newTable[DerivationID, *derivation]("", func(a, b DerivationID) bool { return a < b })}
	for _, k := range kinds {
		t.objects = append(t.objects, newTable[objectName, *Object](string(k.Kind), objectName.less))
	}
	byName := func(a, b string) bool { return a < b }
	for _, x := range types {
		t.resources = append(t.resources, newTable[string, *Resource](x.URL, byName))
		t.tombstones = append(t.tombstones, newTable[string, *Tombstone](x.URL, byName))
	}
	return t
}

// copy gives tables for a transaction to edit.
func (t tables) copy() tables {
	t.objects = slices.Clone(t.objects)
	t.resources = slices.Clone(t.resources)
	t.tombstones = slices.Clone(t.tombstones)
	return t
}

// object, resource and tombstone give one row, or nil: also of a kind or type that
// the rules do not name.
func (t *tables) object(k ObjectKey) *Object {
	if x := find(t.objects, string(k.Kind)); x != nil {
		return x.get(objectName{k.Namespace, k.Name})
	}
	return nil
}

func (t *tables) resource(k ResourceKey) *Resource {
	if x := find(t.resources, k.Type); x != nil {
		return x.get(k.Name)
	}
	return nil
}

func (t *tables) tombstone(k ResourceKey) *Tombstone {
	if x := find(t.tombstones, k.Type); x != nil {
		return x.get(k.Name)
	}
	return nil
}

// find gives the table of a kind or type: there are few.
func find[K, R any](list []table[K, R], of string) *table[K, R] {
	for i := range list {
		if list[i].of == of {
			return &list[i]
		}
	}
	return nil
}
