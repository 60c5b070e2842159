package index_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

var seed = flag.Uint64("seed", 0, "run the metamorphic test with this seed alone")

// TestChangesInAnyOrder: whatever the history, the index is that which is built at
// once from what there is in the end. It prints the seed and the history.
func TestChangesInAnyOrder(t *testing.T) {
	seeds := []uint64{*seed}
	if *seed == 0 {
		seeds = nil
		for s := range uint64(300) {
			seeds = append(seeds, s+1)
		}
	}
	for _, s := range seeds {
		h := indextest.NewHistory(rand.New(rand.NewPCG(s, 0)).IntN)
		ix := indextest.New()
		var log []string
		for step := range 60 {
			var batch []string
			for range 1 + h.Pick(3) {
				batch = append(batch, h.Step())
			}
			log = append(log, strings.Join(batch, "\n"), "--")
			c := apply(ix, indextest.Changes(strings.Join(batch, "\n"))...)
			if most := 20 + 8*len(h.Objects)*len(batch); len(c.Derivations) > most {
				t.Fatalf("seed %d: %d runs for\n%s", s, len(c.Derivations), strings.Join(batch, "\n"))
			}
			if step%10 == 9 {
				compare(t, s, log, h, ix.Snapshot())
			}
		}
	}
}

func compare(t *testing.T, seed uint64, log []string, h *indextest.History, got *index.Snapshot) {
	t.Helper()
	fresh := indextest.New()
	apply(fresh, indextest.Changes(h.AtOnce())...)
	want := fresh.Snapshot()
	for _, f := range []func(*index.Snapshot) string{contents, sortedProblems} {
		if a, b := f(got), f(want); a != b {
			t.Fatalf("seed %d (go test -run ChangesInAnyOrder -seed %d)\n%s\nby changes:\n%s\nat once:\n%s", seed, seed, strings.Join(log, "\n"), a, b)
		}
	}
}

// contents tells what may not depend on the history: bodies, references, needs and
// the kinds of the vector; not the versions in it.
func contents(s *index.Snapshot) string {
	var b strings.Builder
	for _, spec := range (indextest.Rules{}).Types() {
		for r := range s.Resources(spec.URL) {
			refs := shortKeys(r.Refs)
			fmt.Fprintf(&b, "%s %q %v %v", shortKey(r.ResourceKey), r.Body, refs, r.ClosedWorld)
			for _, basis := range r.Provenance {
				if basis.Read { // who demanded it, and so what was found of those kinds, is history
					fmt.Fprintf(&b, " %s=%d", basis.Kind, basis.Need)
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func sortedProblems(s *index.Snapshot) string {
	lines := strings.Split(problemLines(s.Problems()), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
