package index_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// The counts are those of a walk over everything, whatever happened before.
func TestCountsAreThoseOfAWalk(t *testing.T) {
	for seed := range uint64(50) {
		h := indextest.NewHistory(rand.New(rand.NewPCG(seed, 1)).IntN)
		ix := indextest.New()
		for range 80 {
			apply(ix, indextest.Changes(h.Step())...)
			s := ix.Snapshot()
			for _, spec := range (indextest.Rules{}).Types() {
				live, dead := 0, 0
				for range s.Resources(spec.URL) {
					live++
				}
				for range s.Tombstones(spec.URL) {
					dead++
				}
				if l, d := s.Count(spec.URL); l != live || d != dead {
					t.Fatalf("seed %d, %s: counted %d and %d, there are %d and %d", seed, spec.URL, l, d, live, dead)
				}
			}
		}
	}
}

// What a derivation read, made and demanded can be told, and so can who reads an
// object, even one that is not there.
func TestExplain(t *testing.T) {
	ix := indextest.New()
	apply(ix, indextest.Changes("list host @10; a svc=web @5\nlist svc @10; web @6\nlist path @10\nlist slice @10")...)
	d, ok := ix.Derived("host/a")
	if !ok {
		t.Fatalf("host/a has not run; readers of host a: %v", ix.Readers(index.ObjectKey{Kind: indextest.Host, Name: "a"}))
	}
	var reads []string
	for _, r := range d.Reads {
		reads = append(reads, r.String())
	}
	for _, want := range []string{"every host with fqdn=a", "svc web"} {
		if !strings.Contains(strings.Join(reads, "\n"), want) {
			t.Errorf("host/a read %q, and not %q", reads, want)
		}
	}
	if len(d.Makes) == 0 || len(d.Demands) == 0 {
		t.Errorf("host/a: %+v", d)
	}
	demanded, ok := ix.Derived(d.Demands[0])
	if !ok || len(demanded.DemandedBy) != 1 || demanded.DemandedBy[0] != "host/a" {
		t.Errorf("%s: %+v", d.Demands[0], demanded)
	}
	if got := ix.Readers(index.ObjectKey{Kind: indextest.Host, Name: "a"}); len(got) == 0 || got[0] != "host/a" {
		t.Errorf("readers of host a: %v", got)
	}
	apply(ix, indextest.Change("host b svc=nothing @11"))
	if got := ix.Readers(index.ObjectKey{Kind: indextest.Svc, Name: "nothing"}); len(got) == 0 {
		t.Error("nobody reads a svc that is not there, though b refers to it")
	}
	if _, ok := ix.Derived("host/nothing"); ok {
		t.Error("what never ran is derived")
	}
}
