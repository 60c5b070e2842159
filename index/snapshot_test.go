package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// A snapshot never changes, whatever happens afterwards.
func TestSnapshotIsImmutable(t *testing.T) {
	ix := indextest.New()
	apply(ix, indextest.Changes("list host @10; a svc=web @5\nlist svc @10; web @6\nlist path @10\nlist slice @10\nlist cert @10")...)
	s := ix.Snapshot()
	ix.Pass("reader", s.Revision())
	was := everything(s)
	for _, line := range []string{
		"host b svc=web cert=c @11", "svc web port=2 @12", "delete host a @13", "list slice @20; e of=web addr=1 @14",
		"state host forbidden", "source other", "list host @30", "cert c pem=x @31", "list svc @40",
	} {
		apply(ix, indextest.Change(line))
		if now := everything(s); now != was {
			t.Fatalf("%s changed an older snapshot from\n%s\nto\n%s", line, was, now)
		}
	}
}

func everything(s *index.Snapshot) string {
	out := fmt.Sprintln(s.Version(), resourceLines(s), tombstoneLines(s), problemLines(s.Problems()), logLines(s, 0))
	for _, k := range s.Kinds() {
		out += kindLine(k) + "\n" + objectLines(s, k.Kind)
	}
	return out
}

// Snapshots are read while newer ones are made: run it with the race detector.
func TestSnapshotsAreReadConcurrently(t *testing.T) {
	ix := indextest.New()
	var readers sync.WaitGroup
	for reader := range 4 {
		ix.Pass(reader, 0)
		readers.Add(1)
		go func() {
			defer readers.Done()
			defer ix.Leave(reader)
			for s := ix.Snapshot(); s.Revision() < 150; s = ix.Snapshot() {
				if was := everything(s); was != everything(s) {
					t.Error("a snapshot changed")
				}
				ix.Pass(reader, s.Revision())
				<-ix.Changed(s.Revision())
			}
		}()
	}
	h := indextest.NewHistory(rand.New(rand.NewPCG(1, 1)).IntN)
	for ix.Snapshot().Revision() < 150 {
		apply(ix, indextest.Change(h.Step()))
	}
	readers.Wait()
}

// Ordinals are unique among a type's live resources and tombstones, stay with a
// name for as long as one of these is there, and are used again after that.
func TestOrdinals(t *testing.T) {
	ix := indextest.New()
	apply(ix, indextest.Changes("list host @1\nlist path @1\nlist svc @1; web @1\nlist slice @1\nlist cert @1")...)
	ix.Pass("slow", 0)
	of := func(name string) uint32 {
		s, k := ix.Snapshot(), index.ResourceKey{Type: indextest.Routes, Name: name}
		if r := s.Resource(k); r != nil {
			return r.Ordinal
		}
		return s.Tombstone(k).Last.Ordinal
	}
	unique := func() {
		t.Helper()
		seen := map[uint32]string{}
		for r := range ix.Snapshot().Resources(indextest.Routes) {
			seen[r.Ordinal] += r.Name
		}
		for g := range ix.Snapshot().Tombstones(indextest.Routes) {
			seen[g.Last.Ordinal] += g.Last.Name
		}
		for o, names := range seen {
			if len(names) > 1 {
				t.Fatalf("ordinal %d is that of %s", o, names)
			}
		}
	}
	change := func(line string) { t.Helper(); apply(ix, indextest.Change(line)); unique() }

	change("host a svc=web @2")
	change("host b svc=web @3")
	a, b := of("a"), of("b")
	change("host a svc=other @3")
	if of("a") != a {
		t.Fatal("a change gives another ordinal")
	}
	change("delete host a @4")
	change("host c svc=web @5")
	if of("c") == a || of("b") != b {
		t.Fatal("the ordinal of a tombstone is given away")
	}
	change("host a svc=web @6")
	if of("a") != a {
		t.Fatal("a came back with another ordinal")
	}
	change("delete host a @7")
	ix.Pass("slow", ix.Snapshot().Revision())
	change("bookmark host @8")
	change("host d svc=web @9")
	if of("d") != a {
		t.Fatalf("ordinal %d is not used again", a)
	}
}

// A reader that turns up while a commit is under way may take the snapshot before
// it: what that still needs stays.
func TestTombstonesOutliveTheCommitThatMakesThem(t *testing.T) {
	ix := indextest.New()
	apply(ix, indextest.Changes("list host @1; a svc=web @1\nlist path @1\nlist svc @1; web @1\nlist slice @1\nlist cert @1")...)
	apply(ix, indextest.Change("delete host a @2"))
	if ix.Snapshot().Tombstone(index.ResourceKey{Type: indextest.Routes, Name: "a"}) == nil {
		t.Fatal("gone with the commit that buried it")
	}
	apply(ix, indextest.Change("bookmark host @3"))
	if ix.Snapshot().Tombstone(index.ResourceKey{Type: indextest.Routes, Name: "a"}) != nil {
		t.Fatal("kept though nobody reads")
	}
}

// Where the log doesn't reach back it says so; nothing is left out silently.
func TestChangesBeyondTheLog(t *testing.T) {
	ix := indextest.New()
	first := ix.Snapshot().Revision()
	ix.Pass("reader", first)
	apply(ix, indextest.Change("list host @1"))
	tick := func(from, to int) {
		for v := from; v < to; v++ {
			apply(ix, indextest.Change(fmt.Sprintf("bookmark host @%d", v)))
		}
	}
	tick(2, 300)
	if got, ok := ix.Snapshot().Changes(first); !ok || len(got) != int(ix.Snapshot().Revision()-first) {
		t.Fatalf("%d entries, %v, for a reader at %d of %d", len(got), ok, first, ix.Snapshot().Revision())
	}
	ix.Pass("reader", ix.Snapshot().Revision())
	tick(300, 500)
	if _, ok := ix.Snapshot().Changes(first); ok {
		t.Fatal("the log still claims to reach back")
	}
	for since := first; since <= ix.Snapshot().Revision(); since++ {
		if got, ok := ix.Snapshot().Changes(since); ok && len(got) != int(ix.Snapshot().Revision()-since) {
			t.Fatalf("%d entries since %d of %d", len(got), since, ix.Snapshot().Revision())
		}
	}
}

func TestChangedChannel(t *testing.T) {
	ix := indextest.New()
	rev := ix.Snapshot().Revision()
	select {
	case <-ix.Changed(rev - 1):
	default:
		t.Fatal("not told of a revision that exists")
	}
	next := ix.Changed(rev)
	select {
	case <-next:
		t.Fatal("told of nothing")
	default:
	}
	apply(ix, indextest.Change("bookmark host @3")) // nothing changes
	select {
	case <-next:
		t.Fatal("told of a commit that changed nothing")
	default:
	}
	apply(ix, indextest.Change("eager host a @3"))
	<-next
}

// The source's own problems come first, and a subject's list replaces its former.
func TestSourceProblems(t *testing.T) {
	ix := indextest.New()
	bad := index.Problem{Message: "does not parse"}
	worse := index.Problem{Message: "is no YAML at all"}
	c := apply(ix, index.Problems{Subject: "a.yaml", List: []index.Problem{bad}}, indextest.Change("host h invalid=yes @1"))
	if len(c.Problems) != 2 || c.Problems[0] != bad {
		t.Fatalf("new: %v", c.Problems)
	}
	if c = apply(ix, index.Problems{Subject: "a.yaml", List: []index.Problem{bad, worse}}); !slices.Equal(c.Problems, []index.Problem{worse}) {
		t.Fatalf("new: %v", c.Problems)
	}
	if got := ix.Snapshot().Problems(); len(got) != 3 || got[0] != bad || got[1] != worse {
		t.Fatalf("all: %v", got)
	}
	rev := ix.Snapshot().Revision()
	if c = apply(ix, index.Problems{Subject: "b.yaml"}); c.Revision != rev {
		t.Fatal("an empty list of a subject without problems is a revision")
	}
	apply(ix, index.Problems{Subject: "a.yaml"})
	if got := ix.Snapshot().Problems(); len(got) != 1 {
		t.Fatalf("all: %v", got)
	}
}
