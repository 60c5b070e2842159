package index

import (
	"fmt"

	memdb "github.com/hashicorp/go-memdb"
)

// The tables, one noun each. Keys are built by the indexers below; rows hold no
// key of their own.
const (
	tableKinds       = "kinds"
	tableObjects     = "objects"
	tableDerivations = "derivations"
	tableFacts       = "facts"
	tableResources   = "resources"
	tableTombstones  = "tombstones"

	indexID     = "id"
	indexLookup = "lookup"
)

// schema is the go-memdb schema, as data.
var schema = &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
	tableKinds:       table(tableKinds, id(func(r *KindRow) string { return string(r.Kind) })),
	tableObjects:     table(tableObjects, id(func(r *Object) string { return r.path() }), lookups),
	tableDerivations: table(tableDerivations, id(func(r *derivation) string { return string(r.id) })),
	tableFacts:       table(tableFacts, id(func(r *Fact) string { return r.Key })),
	tableResources:   table(tableResources, id(func(r *Resource) string { return r.path() })),
	tableTombstones:  table(tableTombstones, id(func(r *Tombstone) string { return r.Last.path() })),
}}

func (k ResourceKey) path() string { return k.Type + "|" + k.Name }

func table(name string, indexes ...*memdb.IndexSchema) *memdb.TableSchema {
	t := &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{}}
	for _, ix := range indexes {
		t.Indexes[ix.Name] = ix
	}
	return t
}

func id[T any](key func(T) string) *memdb.IndexSchema {
	return &memdb.IndexSchema{Name: indexID, Unique: true, Indexer: &keyIndexer[T]{key}}
}

var lookups = &memdb.IndexSchema{Name: indexLookup, AllowMissing: true, Indexer: lookupIndexer{}}

// keyIndexer is a unique index on one string.
type keyIndexer[T any] struct{ key func(T) string }

func (x *keyIndexer[T]) FromObject(raw any) (bool, []byte, error) {
	row, ok := raw.(T)
	if !ok {
		return false, nil, fmt.Errorf("unexpected row %T", raw)
	}
	return true, terminated(x.key(row)), nil
}

func (x *keyIndexer[T]) FromArgs(args ...any) ([]byte, error) { return stringArg(args, true) }

// PrefixFromArgs lets id be ranged over by a prefix of the key.
func (x *keyIndexer[T]) PrefixFromArgs(args ...any) ([]byte, error) { return stringArg(args, false) }

// lookupIndexer indexes an object under "kind/lookup" for each of its lookups.
type lookupIndexer struct{}

func (lookupIndexer) FromObject(raw any) (bool, [][]byte, error) {
	o, ok := raw.(*Object)
	if !ok {
		return false, nil, fmt.Errorf("unexpected row %T", raw)
	}
	keys := make([][]byte, 0, len(o.Lookups))
	for _, l := range o.Lookups {
		keys = append(keys, terminated(string(o.Kind)+"/"+l))
	}
	return len(keys) > 0, keys, nil
}

func (lookupIndexer) FromArgs(args ...any) ([]byte, error) { return stringArg(args, true) }

func stringArg(args []any, whole bool) ([]byte, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("want one argument, got %d", len(args))
	}
	s, ok := args[0].(string)
	if !ok {
		return nil, fmt.Errorf("want a string, got %T", args[0])
	}
	if whole {
		return terminated(s), nil
	}
	return []byte(s), nil
}

// terminated ends a key with a zero byte, so that no key is a prefix of another.
func terminated(s string) []byte {
	b := make([]byte, 0, len(s)+1)
	return append(append(b, s...), 0)
}
