package index

import (
	"slices"
	"testing"

	memdb "github.com/hashicorp/go-memdb"
)

// Every table has one unique index, takes its own rows and no others, and is in
// the order of kind or type, namespace, name: "a" before "a-b", whatever follows.
func TestSchema(t *testing.T) {
	db, err := memdb.NewMemDB(schema)
	if err != nil {
		t.Fatal(err)
	}
	row := func(name string) *Resource { return &Resource{ResourceKey: ResourceKey{"T", name}} }
	own := map[string]any{
		tableObjects: &Object{}, tableResources: row("a"), tableTombstones: &Tombstone{Last: row("a")}, tableComplaints: &derivation{id: "a"},
	}
	for name, table := range schema.Tables {
		if len(table.Indexes) != 1 || !table.Indexes[indexID].Unique {
			t.Errorf("%s: want one unique index", name)
		}
		for other, r := range own {
			if err := db.Txn(true).Insert(name, r); (err == nil) != (name == other) {
				t.Errorf("%s takes a row of %s: %v", name, other, err)
			}
			db, _ = memdb.NewMemDB(schema)
		}
	}
	w := tables{db.Txn(true)}
	for _, name := range []string{"b", "a-b", "a", "a.b", "ab"} {
		w.put(tableResources, row(name))
	}
	w.put(tableResources, &Resource{ResourceKey: ResourceKey{"T2", "x"}})
	var got []string
	for r := range w.resources("T") {
		got = append(got, r.Name)
	}
	if want := []string{"a", "a-b", "a.b", "ab", "b"}; !slices.Equal(got, want) {
		t.Errorf("order %v, want %v", got, want)
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
