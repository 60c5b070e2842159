package delta_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// The decision table, exhaustively: every way in which a resource can rest on a
// kind × every state of the kind × every way in which the client's version can rest
// on it, for three kinds; with what the client holds and what the index has. The
// rule and a slow, obvious one, written from the table in the design, agree on all
// of them, down to the kinds that are missing.

// profile is how a derivation uses a kind. The client's version is of 100.
type profile struct {
	found   index.ResourceVersion // of the object found, if any
	missing bool                  // a lookup found nothing
	need    index.Need            // of a range
	wanted  bool                  // read only by who demands it
}

var profiles = map[string]profile{
	"-":               {},
	"found 90":        {found: 90},
	"found 110":       {found: 110},
	"missing":         {missing: true},
	"found+missing":   {found: 110, missing: true},
	"strict":          {need: index.NeedStrict},
	"strict 90":       {need: index.NeedStrict, found: 90},
	"strict 110":      {need: index.NeedStrict, found: 110},
	"monotone":        {need: index.NeedMonotone},
	"monotone 90":     {need: index.NeedMonotone, found: 90},
	"monotone 110":    {need: index.NeedMonotone, found: 110},
	"only wanted":     {wanted: true},
	"only wanted 110": {wanted: true, found: 110},
}

// frontiers by name; "⊥" is unobserved, "absent" is not served.
var frontiers = map[string]index.ResourceVersion{"⊥": 0, "below": 95, "at": 100, "above": 120, "absent": 0}

var tableKinds = []index.Kind{"A", "B", "C"}

// setting is the state of one kind in one case.
type setting struct{ profile, frontier string }

func (s setting) uses() profile { return profiles[s.profile] }

func (s setting) observed() bool { return s.frontier != "⊥" && s.frontier != "absent" }
func (s setting) complete() bool { return s.observed() || s.frontier == "absent" }
func (s setting) reaches(v index.ResourceVersion) bool {
	return s.observed() && frontiers[s.frontier] >= v
}

// needs: the derivation relied on the absence of objects in one of the ways.
func (s setting) needs(n index.Need) bool {
	p := s.uses()
	var has index.Need
	if p.missing {
		has |= index.NeedMissing
	}
	if p.wanted {
		has |= index.NeedRemoval
	} else {
		has |= p.need
	}
	return has&n != 0
}

func TestDecisionTable(t *testing.T) {
	a := settings(keys(profiles), "⊥", "below", "at", "above")
	b := settings([]string{"-", "found 110", "strict", "missing"}, "⊥", "at")
	c := settings([]string{"-", "monotone 90", "only wanted", "missing"}, "⊥", "above", "absent")
	n := 0
	for _, x := range a {
		for _, y := range b {
			for _, z := range c {
				n += checkTable(t, table{x, y, z})
				if t.Failed() {
					return
				}
			}
		}
	}
	t.Logf("%d decisions agree", n)
}

func settings(profiles []string, frontiers ...string) []setting {
	var out []setting
	for _, p := range profiles {
		for _, f := range frontiers {
			out = append(out, setting{p, f})
		}
	}
	return out
}

func keys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// table is one case: the settings of the three kinds.
type table [3]setting

const tableType = "example/Table"

// names of the resources in one case.
const open, closed, never = "open", "closed", "never"

func checkTable(t *testing.T, c table) int {
	t.Helper()
	rules := &tableRules{table: c, emit: true}
	ix, err := index.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	ix.Pass("reader", 0)
	ix.Apply(index.Cause{}, c.changes()...)
	live := ix.Snapshot()
	n := 0
	for _, name := range []string{open, closed} {
		for _, h := range c.holdings(live, name) {
			n++
			compareVerdicts(t, c, live, name, h, c.slowSend(h, name == closed))
		}
	}
	rules.emit = false
	ix.Apply(index.Cause{}, index.Witness{Resource: index.ResourceKey{Type: tableType, Name: "flip"}})
	gone := ix.Snapshot()
	if gone.Tombstone(index.ResourceKey{Type: tableType, Name: open}) == nil {
		t.Fatalf("%v: no tombstone", c)
	}
	for _, name := range []string{open, never} {
		for _, h := range c.holdings(gone, name) {
			n++
			compareVerdicts(t, c, gone, name, h, c.slowRemove(h, name == open))
		}
	}
	return n
}

func compareVerdicts(t *testing.T, c table, s *index.Snapshot, name string, h *index.Token, want verdict) {
	t.Helper()
	v := delta.Decide(s, index.ResourceKey{Type: tableType, Name: name}, h, nil)
	got := verdict{action: v.Action}
	for _, l := range v.Missing {
		got.lack(l.Kind)
	}
	if got.String() != want.String() {
		t.Errorf("%v, %s, held %+v: the rule says %v, the slow one %v", c, name, h, got, want)
	}
	if v.Action == delta.Remove && (!v.Proof.Valid() || v.Proof.Key().Name != name) {
		t.Errorf("%v, %s, held %+v: removed without a proof of it", c, name, h)
	}
}

type verdict struct {
	action delta.Action
	lacks  []string
}

func (v *verdict) lack(k index.Kind) {
	if !slices.Contains(v.lacks, string(k)) {
		v.lacks = append(v.lacks, string(k))
		slices.Sort(v.lacks)
	}
}

func (v verdict) String() string {
	return [...]string{"nothing", "send", "remove", "withhold"}[v.action] + " " + strings.Join(v.lacks, " ")
}

func (v verdict) otherwise(a delta.Action) verdict {
	v.action = a
	if len(v.lacks) > 0 {
		v.action = delta.Withhold
	}
	return v
}

// slowSend is the table's rows for a resource that the index has.
func (c table) slowSend(h *index.Token, closedWorld bool) verdict {
	var v verdict
	switch {
	case h == nil:
		for i, k := range c {
			needed := k.needs(index.NeedMissing) || closedWorld && k.needs(index.NeedStrict|index.NeedMonotone)
			if needed && !k.complete() {
				v.lack(tableKinds[i])
			}
		}
		return v.otherwise(delta.Send)
	case h.Digest == tableDigest && !h.Formless:
		return v
	}
	for i, k := range c {
		if k.needs(index.NeedMissing|index.NeedStrict) && !k.complete() {
			v.lack(tableKinds[i])
		}
		if h.Foreign && !k.complete() {
			v.lack(tableKinds[i])
		}
		if held, ok := h.Of(tableKinds[i]); ok && !k.mayReplace(held) {
			v.lack(tableKinds[i])
		}
	}
	return v.otherwise(delta.Send)
}

// mayReplace: frontier ≥ held, or the resource rests on objects alone and these are
// as new; and what follows from the kinds of needs.
func (s setting) mayReplace(h index.Held) bool {
	p := s.uses()
	if s.reaches(h.Version) {
		return true
	}
	if p.wanted {
		return true // not read: it decides the removal alone
	}
	relies := p.missing || p.need != 0
	if !relies && p.found != 0 && p.found >= h.Version {
		return true
	}
	if !h.Absent {
		return false
	}
	// The client's version has no object of the kind in it. It can lose none, unless
	// the new version says that something is missing, or who wins; and what was found
	// must not be older than the list that did not have it.
	if !p.missing && p.need != index.NeedStrict && (p.found == 0 || p.found >= h.Version) {
		return true
	}
	return s.frontier == "absent"
}

// slowRemove is the table's rows for a resource that the index does not have.
func (c table) slowRemove(h *index.Token, tombstone bool) verdict {
	var v verdict
	for i, k := range c {
		kind := tableKinds[i]
		if (h == nil || h.Foreign) && !k.complete() {
			v.lack(kind)
		}
		if h == nil {
			continue
		}
		if held, ok := h.Of(kind); ok && !k.reaches(held.Version) && !(held.Absent && k.frontier == "absent") {
			v.lack(kind)
		}
		if tombstone && k.needs(0xff) && !k.complete() {
			v.lack(kind)
		}
	}
	return v.otherwise(delta.Remove)
}

var tableDigest = index.DigestOf([]byte("body"))

// holdings gives all that the client may hold.
func (c table) holdings(s *index.Snapshot, name string) []*index.Token {
	out := []*index.Token{
		nil,
		{Foreign: true, Formless: true},
		{Foreign: true, Digest: tableDigest},
		{Foreign: true, Digest: 1},
	}
	if r := s.Resource(index.ResourceKey{Type: tableType, Name: name}); r != nil {
		own := s.TokenOf(r)
		out = append(out, &own)
	}
	entries := func(k index.Kind) [][]index.Held {
		return [][]index.Held{
			nil, {{Kind: k, Version: 100}}, {{Kind: k, Version: 100, Absent: true}}, {{Kind: k, Absent: true}},
		}
	}
	for _, a := range entries("A") {
		for _, b := range entries("B")[:2] {
			for _, c := range entries("C")[:3] {
				for _, digest := range []index.Digest{1, tableDigest} {
					out = append(out, &index.Token{Digest: digest, Vector: slices.Concat(a, b, c)})
				}
			}
		}
	}
	return out
}

// changes bring the kinds into the states of the case.
func (c table) changes() []index.Change {
	out := []index.Change{index.SourceID{ID: "s"}}
	for i, k := range c {
		var objects []*index.Object
		if p := k.uses(); p.found != 0 {
			objects = append(objects, &index.Object{ObjectKey: index.ObjectKey{Kind: tableKinds[i], Name: "x"}, Version: p.found})
		}
		switch {
		case k.observed():
			out = append(out, index.Replace{Kind: tableKinds[i], Objects: objects, Version: frontiers[k.frontier]})
			continue
		case k.frontier == "absent":
			out = append(out, index.KindStatus{Kind: tableKinds[i], State: index.Absent})
		}
		for _, o := range objects {
			out = append(out, index.Upsert{Object: o})
		}
	}
	return out
}

func (c table) String() string {
	out := ""
	for i, k := range c {
		out += fmt.Sprintf("%s(%s, %s) ", tableKinds[i], k.profile, k.frontier)
	}
	return strings.TrimSpace(out)
}

// tableRules make "open" and "closed" in the way that a case says.
type tableRules struct {
	table table
	emit  bool
}

func (*tableRules) Kinds() []index.KindSpec {
	return []index.KindSpec{{Kind: "A", Code: "A", Required: true}, {Kind: "B", Code: "B", Required: true}, {Kind: "C", Code: "C"}}
}

func (*tableRules) Types() []index.TypeSpec {
	return []index.TypeSpec{{URL: tableType, Feeds: tableKinds}}
}
func (*tableRules) Prepare(o *index.Object)                     { o.Lookups = []string{"all"} }
func (*tableRules) Subjects(*index.Object) []index.DerivationID { return nil }
func (*tableRules) Roots() []index.DerivationID                 { return []index.DerivationID{"root"} }
func (*tableRules) Rank(id index.DerivationID) int              { return len(id) - len("made") }

func (x *tableRules) Derive(id index.DerivationID, _ any, r *index.Reader) {
	if id == "root" {
		var wanted []index.Kind
		for i, k := range x.table {
			if k.uses().wanted {
				r.Range(tableKinds[i], "all", index.NeedMonotone)
				wanted = append(wanted, tableKinds[i])
			}
		}
		r.Demand("maker", nil, wanted...)
		return
	}
	for i, k := range x.table {
		k.uses().read(tableKinds[i], r)
	}
	r.Witnessed(index.ResourceKey{Type: tableType, Name: "flip"})
	if x.emit {
		r.Emit(index.Draft{Type: tableType, Name: open, Body: []byte("body")})
		r.Emit(index.Draft{Type: tableType, Name: closed, Body: []byte("body"), ClosedWorld: true})
	}
}

func (p profile) read(k index.Kind, r *index.Reader) {
	switch {
	case p.wanted:
		return
	case p.need != 0:
		r.Range(k, "all", p.need)
	case p.found != 0:
		r.Get(k, "", "x")
	}
	if p.missing {
		r.Get(k, "", "not there")
	}
}

// The wait of a fresh client for kinds that keep failing may end; that excuses
// nothing towards a client that holds something.
func TestExcusedKinds(t *testing.T) {
	c := table{{"missing", "⊥"}, {"strict", "⊥"}, {"-", "above"}}
	ix, err := index.New(&tableRules{table: c, emit: true})
	if err != nil {
		t.Fatal(err)
	}
	ix.Apply(index.Cause{}, c.changes()...)
	held := &index.Token{Digest: 1}
	cases := []struct {
		name    string
		held    *index.Token
		excused string
		want    string
	}{
		{open, nil, "", "withhold A"},
		{open, nil, "A", "send "},
		{closed, nil, "A", "withhold B"},
		{closed, nil, "AB", "send "},
		{open, held, "AB", "withhold A B"},
		{never, nil, "AB", "withhold A B"},
		{never, held, "AB", "remove "}, // nothing of what is held rests on them
	}
	for _, x := range cases {
		v := delta.Decide(ix.Snapshot(), index.ResourceKey{Type: tableType, Name: x.name}, x.held, func(k index.Kind) bool {
			return strings.Contains(x.excused, string(k))
		})
		got := verdict{action: v.Action}
		for _, l := range v.Missing {
			got.lack(l.Kind)
		}
		if got.String() != x.want {
			t.Errorf("%s, held %v, excused %q: %s, want %s", x.name, x.held, x.excused, got, x.want)
		}
	}
}
