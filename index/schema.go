package index

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/cespare/xxhash/v2"
	memdb "github.com/hashicorp/go-memdb"
)

// The go-memdb tables, one noun each: what a snapshot shows. What only the writer
// reads (lookups, facts, who read what) is in maps of the Index, since an entry of
// an index of a table takes some 700 bytes.
const (
	tableObjects    = "objects"    // *Object
	tableResources  = "resources"  // *Resource
	tableTombstones = "tombstones" // *Tombstone
	tableComplaints = "complaints" // *derivation, those with something to say to people

	indexID = "id"
)

// schema is the schema, as data. Rows hold no key of their own: the functions here
// make it.
var schema = &memdb.DBSchema{Tables: map[string]*memdb.TableSchema{
	tableObjects:    table(tableObjects, func(o *Object) []byte { return key(string(o.Kind), o.Namespace, o.Name) }),
	tableResources:  table(tableResources, func(r *Resource) []byte { return resourceKey(r.Type, r.Name) }),
	tableTombstones: table(tableTombstones, func(t *Tombstone) []byte { return resourceKey(t.Last.Type, t.Last.Name) }),
	tableComplaints: table(tableComplaints, func(d *derivation) []byte { return key(string(d.id)) }),
}}

func table[R any](name string, key func(R) []byte) *memdb.TableSchema {
	return &memdb.TableSchema{Name: name, Indexes: map[string]*memdb.IndexSchema{
		indexID: {Name: indexID, Unique: true, Indexer: keyIndexer[R]{key}},
	}}
}

// key ends each part with a zero byte, which no part has in it, so that keys sort
// by their parts and no key is the beginning of another.
func key(parts ...string) []byte {
	n := len(parts)
	for _, p := range parts {
		n += len(p)
	}
	b := make([]byte, 0, n)
	for _, p := range parts {
		b = append(append(b, p...), 0)
	}
	return b
}

// resourceKey has a hash of the type in its front: a type URL is twice as long as a
// name, and each entry would hold it.
func resourceKey(typeURL, name string) []byte {
	b := ofType(make([]byte, 0, 8+len(name)+1), typeURL)
	return append(append(b, name...), 0)
}

func ofType(b []byte, typeURL string) []byte {
	return binary.BigEndian.AppendUint64(b, xxhash.Sum64String(typeURL))
}

// keyIndexer is the unique index of a table. Its arguments are keys.
type keyIndexer[R any] struct{ key func(R) []byte }

// FromObject implements memdb.SingleIndexer.
func (x keyIndexer[R]) FromObject(raw any) (bool, []byte, error) {
	row, ok := raw.(R)
	if !ok {
		return false, nil, fmt.Errorf("unexpected row %T", raw)
	}
	return true, x.key(row), nil
}

// FromArgs implements memdb.Indexer.
func (keyIndexer[R]) FromArgs(args ...any) ([]byte, error) {
	if len(args) == 1 {
		if k, ok := args[0].([]byte); ok {
			return k, nil
		}
	}
	return nil, fmt.Errorf("want one key, got %v", args)
}

// PrefixFromArgs implements memdb.PrefixIndexer.
func (x keyIndexer[R]) PrefixFromArgs(args ...any) ([]byte, error) { return x.FromArgs(args...) }

// tables are the tables as one transaction shows them, typed.
type tables struct{ txn *memdb.Txn }

// object, resource and tombstone give one row, or nil.
func (t tables) object(k ObjectKey) *Object {
	return first[*Object](t.txn, tableObjects, key(string(k.Kind), k.Namespace, k.Name))
}

func (t tables) resource(k ResourceKey) *Resource {
	return first[*Resource](t.txn, tableResources, resourceKey(k.Type, k.Name))
}

func (t tables) tombstone(k ResourceKey) *Tombstone {
	return first[*Tombstone](t.txn, tableTombstones, resourceKey(k.Type, k.Name))
}

// objects, resources, tombstones and complaints give rows in the order of their keys.
func (t tables) objects(k Kind) iter.Seq[*Object] {
	return each[*Object](t.txn, tableObjects, key(string(k)))
}

func (t tables) resources(typeURL string) iter.Seq[*Resource] {
	return each[*Resource](t.txn, tableResources, ofType(nil, typeURL))
}

func (t tables) tombstones(typeURL string) iter.Seq[*Tombstone] {
	return each[*Tombstone](t.txn, tableTombstones, ofType(nil, typeURL))
}

func (t tables) complaints() iter.Seq[*derivation] {
	return each[*derivation](t.txn, tableComplaints, nil)
}

// put and delete edit the tables of a write transaction. That either fails is a
// fault of the schema, which is ours.
func (t tables) put(table string, row any) {
	if err := t.txn.Insert(table, row); err != nil {
		panic("index: " + err.Error())
	}
}

func (t tables) delete(table string, row any) {
	if err := t.txn.Delete(table, row); err != nil {
		panic("index: " + err.Error())
	}
}

func first[R any](txn *memdb.Txn, table string, k []byte) R {
	var none R
	raw, err := txn.First(table, indexID, k)
	if err != nil {
		panic("index: " + err.Error())
	}
	if raw == nil {
		return none
	}
	return raw.(R)
}

func each[R any](txn *memdb.Txn, table string, prefix []byte) iter.Seq[R] {
	return func(yield func(R) bool) {
		it, err := txn.Get(table, indexID+"_prefix", prefix)
		if err != nil {
			panic("index: " + err.Error())
		}
		for raw := it.Next(); raw != nil; raw = it.Next() {
			if !yield(raw.(R)) {
				return
			}
		}
	}
}
