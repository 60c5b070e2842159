package index_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// A subject's derivation that has nothing to show yet but found its object must
// hear of what it lacks.
func TestSubjectThatMakesNothingYetIsNotForgotten(t *testing.T) {
	ix := puppet{
		subject: func(o *index.Object) []index.DerivationID {
			if o.Kind != kindA {
				return nil
			}
			return []index.DerivationID{"a"}
		},
		derive: map[index.DerivationID]func(*index.Reader){"a": func(r *index.Reader) {
			if _, p := r.Get(kindA, "", "x"); p != index.Found {
				return
			}
			switch b, p := r.Get(kindB, "", "y"); p {
			case index.Found:
				r.Emit(emit("x", b.Body.(string)))
			default:
				r.Problem(index.Problem{Message: "y is missing"})
			}
		}},
	}.index(t)

	if c := apply(ix, index.Upsert{Object: obj(kindA, "x", "", 1)}); len(c.Problems) != 0 {
		t.Fatalf("said %v before B is complete", c.Problems)
	}
	if c := apply(ix, index.Replace{Kind: kindB, Version: 5}); len(c.Problems) != 1 {
		t.Fatalf("B is complete and %v is said, not that y is missing", c.Problems)
	}
	apply(ix, index.Upsert{Object: obj(kindB, "y", "found", 6), InOrder: true})
	if r := ix.Snapshot().Resource(index.ResourceKey{Type: typeT, Name: "x"}); r == nil || string(r.Body) != "found" {
		t.Fatalf("got %v after y turned up", r)
	}
	if p := ix.Snapshot().Problems(); len(p) != 0 {
		t.Fatalf("still says %v", p)
	}
	apply(ix, index.Replace{Kind: kindA, Version: 9})
	if _, _, ok := ix.Snapshot().Derivation("a"); ok {
		t.Fatal("the derivation outlives its object")
	}
}

// A problem may rest on a fact that rests on an absence. The fact stays the same
// when the kind completes; the problem is said then.
func TestProblemThatRestsOnAFactsAbsence(t *testing.T) {
	ix := puppet{
		roots: []index.DerivationID{"fact", "user"},
		rank:  map[index.DerivationID]int{"user": 1},
		derive: map[index.DerivationID]func(*index.Reader){
			"fact": func(r *index.Reader) {
				r.Get(kindB, "", "y")
				r.SetFact(index.Fact{Key: "f/x", Digest: 1})
			},
			"user": func(r *index.Reader) {
				r.Fact("f/x")
				r.Problem(index.Problem{Message: "no y"})
			},
		},
	}.index(t)
	if p := ix.Snapshot().Problems(); len(p) != 0 {
		t.Fatalf("said %v before B is complete", p)
	}
	if c := apply(ix, index.Replace{Kind: kindB, Version: 5}); len(c.Problems) != 1 {
		t.Fatalf("new problems %v, want one", c.Problems)
	}
}

// A derivation may ask for the same thing several times.
func TestDemandedTwiceByOne(t *testing.T) {
	ix := puppet{
		roots: []index.DerivationID{"root"},
		rank:  map[index.DerivationID]int{"made": 1},
		derive: map[index.DerivationID]func(*index.Reader){
			"root": func(r *index.Reader) {
				if len(r.Range(kindA, "all", index.NeedStrict)) > 0 {
					r.Demand("made", nil, kindA)
					r.Demand("made", nil, kindA)
				}
			},
			"made": func(r *index.Reader) { r.Emit(emit("m", "")) },
		},
	}.index(t)
	apply(ix, index.Replace{Kind: kindA, Objects: []*index.Object{obj(kindA, "x", "", 1)}, Version: 2})
	if ix.Snapshot().Resource(index.ResourceKey{Type: typeT, Name: "m"}) == nil {
		t.Fatal("not made")
	}
	apply(ix, index.Delete{Key: index.ObjectKey{Kind: kindA, Name: "x"}, Version: 3})
	if ix.Snapshot().Resource(index.ResourceKey{Type: typeT, Name: "m"}) != nil {
		t.Fatal("still there")
	}
}

// Everything that demands a derivation decides whether it is wanted, not only what
// came first.
func TestRemovalNeedsTheKindsOfAllDemanders(t *testing.T) {
	wants := func(k index.Kind) func(*index.Reader) {
		return func(r *index.Reader) {
			if len(r.Range(k, "all", index.NeedMonotone)) > 0 {
				r.Demand("made", nil, k)
			}
		}
	}
	ix := puppet{
		roots: []index.DerivationID{"one", "two"},
		rank:  map[index.DerivationID]int{"made": 1},
		derive: map[index.DerivationID]func(*index.Reader){
			"one": wants(kindA), "two": wants(kindB),
			"made": func(r *index.Reader) { r.Emit(emit("m", "")) },
		},
	}.index(t)
	m := index.ResourceKey{Type: typeT, Name: "m"}
	apply(ix, index.Upsert{Object: obj(kindA, "x", "", 5)})
	if got := vector(ix.Snapshot(), ix.Snapshot().Resource(m)); got != "A:5" {
		t.Fatalf("vector %s", got)
	}
	apply(ix, index.Upsert{Object: obj(kindB, "y", "", 6)})
	if got := vector(ix.Snapshot(), ix.Snapshot().Resource(m)); got != "A:5,B:6" {
		t.Fatalf("vector %s after a second demander", got)
	}
	// Not read by the derivation itself: neither kind can hold back a change of it.
	for _, b := range ix.Snapshot().Resource(m).Provenance {
		if b.Read || b.Need != index.NeedRemoval {
			t.Fatalf("basis %+v", b)
		}
	}
}

// A demanded derivation that goes and comes back within a commit, with facts and
// readers hanging on it, ends as if nothing had happened.
func TestDisposedAndDemandedAgain(t *testing.T) {
	ix := puppet{
		roots: []index.DerivationID{"root", "user"},
		rank:  map[index.DerivationID]int{"made": 1, "user": 2},
		derive: map[index.DerivationID]func(*index.Reader){
			"root": func(r *index.Reader) {
				for _, o := range r.Range(kindA, "all", index.NeedStrict) {
					r.Demand("made", nil)
					_ = o
				}
			},
			"made": func(r *index.Reader) { r.SetFact(index.Fact{Key: "f/x", Digest: 1}); r.Emit(emit("m", "")) },
			"user": func(r *index.Reader) {
				_, ok := r.Fact("f/x")
				r.Emit(emit("u", fmt.Sprint(ok)))
			},
		},
	}.index(t)
	body := func() string {
		return string(ix.Snapshot().Resource(index.ResourceKey{Type: typeT, Name: "u"}).Body)
	}
	x := index.Upsert{Object: obj(kindA, "x", "", 0)}
	gone := index.Delete{Key: x.Object.ObjectKey}
	apply(ix, x)
	if body() != "true" {
		t.Fatal("the fact did not reach its reader")
	}
	apply(ix, gone, index.Upsert{Object: obj(kindA, "x2", "", 0)})
	if body() != "true" {
		t.Fatal("the fact is lost")
	}
	apply(ix, index.Delete{Key: index.ObjectKey{Kind: kindA, Name: "x2"}})
	if body() != "false" {
		t.Fatal("the fact outlives its maker")
	}
	apply(ix, x)
	if body() != "true" {
		t.Fatal("the fact did not come back")
	}
}

func TestBrokenRulesPanic(t *testing.T) {
	both := func(r *index.Reader) { r.Emit(emit("m", "")) }
	cases := map[string]puppet{
		"twice by one": {
			roots:  []index.DerivationID{"a"},
			derive: map[index.DerivationID]func(*index.Reader){"a": func(r *index.Reader) { both(r); both(r) }},
		},
		"by two": {
			roots:  []index.DerivationID{"a", "b"},
			derive: map[index.DerivationID]func(*index.Reader){"a": both, "b": both},
		},
	}
	for name, rules := range cases {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Fatal("no panic")
				}
			}()
			rules.index(t)
		})
	}
}

func TestKindCodesMustBeUsable(t *testing.T) {
	for _, code := range []string{"", "A.", "A,B", "A:", "A~"} {
		if _, err := index.New(puppet{kinds: []index.KindSpec{{Kind: kindA, Code: code}}}); err == nil {
			t.Errorf("code %q is accepted", code)
		}
	}
	if _, err := index.New(puppet{kinds: []index.KindSpec{{Kind: kindA, Code: "A"}, {Kind: kindB, Code: "A"}}}); err == nil {
		t.Error("two kinds share a code")
	}
}

// The cost of a change is that of what it touches: with 300 hosts, each with a
// Service of its own, a change runs the derivations of one host.
func TestOneChangeRunsOnlyItsReaders(t *testing.T) {
	ix := indextest.New()
	var hosts, svcs, slices_ []string
	for i := range 300 {
		hosts = append(hosts, fmt.Sprintf("h%d svc=s%d @%d", i, i, i+1))
		svcs = append(svcs, fmt.Sprintf("s%d @%d", i, i+1))
		slices_ = append(slices_, fmt.Sprintf("e%d of=s%d addr=%d @%d", i, i, i, i+1))
	}
	apply(ix, indextest.Changes(strings.Join([]string{
		"list host @1000;" + strings.Join(hosts, ";"), "list svc @1000;" + strings.Join(svcs, ";"),
		"list slice @1000;" + strings.Join(slices_, ";"), "list path @1000", "list cert @1000",
	}, "\n"))...)
	cases := []struct{ change, runs string }{
		{"slice e7 of=s7 addr=new @1001", "endpoints/s7"},
		{"svc s7 port=81 @1002", "cluster/s7 host/h7"},
		{"host h7 svc=s8 @1003", "cluster/s7 cluster/s8 endpoints/s7 host/h7 http"},
		{"cert nobody @1004", ""},
		{"bookmark host @1005", ""},
		{"list slice @1006;" + strings.Join(slices.Replace(slices.Clone(slices_), 7, 8, "e7 of=s7 addr=new @1001"), ";"), ""},
	}
	for _, c := range cases {
		commit := apply(ix, indextest.Changes(c.change)...)
		allowed := strings.Fields(c.runs)
		for _, id := range commit.Derivations {
			if !slices.Contains(allowed, string(id)) {
				t.Errorf("%s ran %s; want only %v", c.change[:12], id, allowed)
			}
		}
		if len(commit.Derivations) > 2*len(allowed) {
			t.Errorf("%s ran %v", c.change[:12], commit.Derivations)
		}
	}
}

// The same changes have the same effects, down to the order of the runs.
func TestApplyIsDeterministic(t *testing.T) {
	var first []string
	for range 10 {
		ix := indextest.New()
		var got []string
		for range 3 {
			for i := range 20 {
				c := apply(ix, indextest.Changes(fmt.Sprintf("eager host h%d fqdn=f%d svc=s%d,t cert=c%d\neager path p%d fqdn=f%d svc=t\neager svc t", i, i%7, i%5, i%3, i, i%7))...)
				got = append(got, describe(c))
			}
		}
		for _, spec := range (indextest.Rules{}).Types() {
			for r := range ix.Snapshot().Resources(spec.URL) {
				got = append(got, fmt.Sprint(r.ResourceKey, r.Ordinal, ix.Snapshot().Token(r)))
			}
		}
		if first == nil {
			first = got
		} else if !slices.Equal(first, got) {
			t.Fatal("two runs of the same changes differ")
		}
	}
}

// A removal needs what the run relied on that no longer made the resource, not only
// what the resource itself had needed.
func TestTombstoneHasTheNeedsOfTheLastRun(t *testing.T) {
	ix := puppet{
		roots: []index.DerivationID{"root"},
		derive: map[index.DerivationID]func(*index.Reader){"root": func(r *index.Reader) {
			if x, p := r.Get(kindA, "", "x"); p == index.Found && x.Body == "plain" {
				r.Emit(emit("x", ""))
			} else {
				r.Get(kindB, "", "permission")
			}
		}},
	}.index(t)
	k := index.ResourceKey{Type: typeT, Name: "x"}
	apply(ix, index.Replace{Kind: kindA, Objects: []*index.Object{obj(kindA, "x", "plain", 1)}, Version: 2})
	held := ix.Snapshot().TokenOf(ix.Snapshot().Resource(k))
	apply(ix, index.Upsert{Object: obj(kindA, "x", "needs permission", 3), InOrder: true})
	if p, lacks := ix.Snapshot().ProveAbsent(k, held); p.Valid() || lackNames(lacks) != "B(⊥<0)" {
		t.Fatalf("proven: %v; lacks %s", p.Valid(), lackNames(lacks))
	}
}

// A derivation that is demanded, and released before it has run, does not run: it
// has no param.
func TestDemandedAndReleasedBeforeItRan(t *testing.T) {
	ran := 0
	p := puppet{
		rank:    map[index.DerivationID]int{"give/x": 0, "ask/x": 1, "part/x": 2},
		subject: func(*index.Object) []index.DerivationID { return []index.DerivationID{"ask/x"} },
		derive: map[index.DerivationID]func(*index.Reader){
			"give/x": func(r *index.Reader) { r.SetFact(index.Fact{Key: "f/x"}) },
			"ask/x": func(r *index.Reader) {
				r.Range(kindA, "all", index.NeedMonotone)
				r.Demand("give/x", nil)
				if _, ok := r.Fact("f/x"); !ok {
					r.Demand("part/x", "param")
				}
			},
			"part/x": func(r *index.Reader) { ran++ },
		},
	}
	ix := p.index(t)
	apply(ix, index.Upsert{Object: obj(kindA, "a", "", 1)})
	if ran != 0 {
		t.Errorf("ran %d times", ran)
	}
	if _, _, ok := ix.Snapshot().Derivation("part/x"); ok {
		t.Error("it is still there")
	}
}
