package index

import (
	"testing"

	memdb "github.com/hashicorp/go-memdb"
)

// rowsOf has a row of each table. A table that is added needs one here.
var rowsOf = map[string]any{
	tableKinds:       &KindRow{KindSpec: KindSpec{Kind: "A"}},
	tableObjects:     &Object{ObjectKey: ObjectKey{Kind: "A", Namespace: "ns", Name: "x"}, Lookups: []string{"k=v"}},
	tableDerivations: &derivation{id: "form/x"},
	tableFacts:       &Fact{Key: "form/x"},
	tableResources:   &Resource{ResourceKey: ResourceKey{"t", "x"}},
	tableTombstones:  &Tombstone{Last: &Resource{ResourceKey: ResourceKey{"t", "x"}}},
}

// TestSchema walks the live schema: every table has one unique index by id, no key
// is a prefix of another, and a wrong row or argument is an error, never a panic.
func TestSchema(t *testing.T) {
	if err := schema.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, table := range schema.Tables {
		t.Run(name, func(t *testing.T) {
			row := rowsOf[name]
			if row == nil || table.Name != name {
				t.Fatalf("table %q has no row in this test", table.Name)
			}
			if id := table.Indexes[indexID]; id == nil || !id.Unique || id.AllowMissing {
				t.Fatal("no unique id")
			}
			for _, ix := range table.Indexes {
				walkIndex(t, ix, row)
			}
		})
	}
}

func walkIndex(t *testing.T, ix *memdb.IndexSchema, row any) {
	var keys [][]byte
	switch x := ix.Indexer.(type) {
	case memdb.SingleIndexer:
		_, key, err := x.FromObject(row)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
		if _, _, err := x.FromObject("not a row"); err == nil {
			t.Errorf("%s takes a string for a row", ix.Name)
		}
	case memdb.MultiIndexer:
		_, all, err := x.FromObject(row)
		if err != nil {
			t.Fatal(err)
		}
		keys = all
		if _, _, err := x.FromObject("not a row"); err == nil {
			t.Errorf("%s takes a string for a row", ix.Name)
		}
	default:
		t.Fatalf("%s: what is %T?", ix.Name, x)
	}
	for _, key := range keys {
		if len(key) < 2 || key[len(key)-1] != 0 {
			t.Errorf("%s: key %q is not terminated", ix.Name, key)
		}
	}
	for _, args := range [][]any{nil, {1}, {"a", "b"}} {
		if _, err := ix.Indexer.FromArgs(args...); err == nil {
			t.Errorf("%s takes %v for a key", ix.Name, args)
		}
	}
}

// A name that begins like another, or has the separators in it, is another row.
func TestKeysDoNotRunIntoEachOther(t *testing.T) {
	names := []string{"a", "a/b", "ab", "a|b", "a b", "", "ä"}
	seen := map[string]bool{}
	for _, ns := range names {
		for _, n := range names {
			seen[ObjectKey{Kind: "K", Namespace: ns + "x", Name: n}.path()] = true
		}
	}
	if len(seen) < len(names)*len(names)-2 { // "a/b"+"x" and the like can't be in Kubernetes
		t.Fatalf("%d keys of %d", len(seen), len(names)*len(names))
	}
}

func TestTrimLog(t *testing.T) {
	entries := func(from, to Revision) []LogEntry {
		var out []LogEntry
		for r := from; r <= to; r++ {
			out = append(out, LogEntry{Revision: r})
		}
		return out
	}
	cases := []struct {
		name    string
		log     []LogEntry
		slowest Revision
		first   Revision // of what is kept
	}{
		{"short logs are kept", entries(1, 60), 60, 1},
		{"nobody has passed", entries(1, 1000), 0, 1},
		{"all have passed", entries(1, 1000), 999, 1000},
		{"half have passed", entries(1, 1000), 500, 501},
		{"too few to be worth a copy", entries(1, 1000), 400, 1},
		{"a reader that stands still doesn't keep it all", entries(1, maxLog+1), 0, maxLog/2 + 2},
	}
	for _, c := range cases {
		got := trimLog(c.log, c.slowest)
		if got[0].Revision != c.first || got[len(got)-1].Revision != c.log[len(c.log)-1].Revision {
			t.Errorf("%s: kept %d to %d, want from %d", c.name, got[0].Revision, got[len(got)-1].Revision, c.first)
		}
	}
}

// The log stays bounded whatever the slowest reader does.
func TestLogIsBounded(t *testing.T) {
	for _, behind := range []Revision{0, 10, 1000, maxLog - 1, maxLog + 1, 1 << 40} {
		var log []LogEntry
		for r := Revision(1); r < 6*maxLog; r++ {
			var slowest Revision
			if r > behind {
				slowest = r - behind
			}
			log = append(trimLog(log, slowest), LogEntry{Revision: r})
			if len(log) > 2*maxLog+1 {
				t.Fatalf("%d entries at revision %d with a reader %d behind", len(log), r, behind)
			}
			if log[len(log)-1].Revision != r {
				t.Fatal("the newest entry is lost")
			}
		}
	}
}
