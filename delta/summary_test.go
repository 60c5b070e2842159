package delta

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// A summary's groups and first names are those of a slower, obvious one.
func TestGroupingIsThatOfASort(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		list := manyWithheld(r, 1+r.IntN(400))
		g := grouping{}
		for i := range list {
			g.add(&list[i])
		}
		slices.SortFunc(list, func(a, b Withheld) int { return strings.Compare(a.Resource.Name, b.Resource.Name) })
		if g.count != len(list) || fmt.Sprint(g.first) != fmt.Sprint(list[:min(len(list), listed)]) {
			t.Fatalf("seed %d: %d, first %v", seed, g.count, g.first)
		}
		if got, want := groupLines(g.groups()), obviousGroups(list); got != want {
			t.Fatalf("seed %d: got\n%swant\n%s", seed, got, want)
		}
	}
}

func manyWithheld(r *rand.Rand, n int) []Withheld {
	var out []Withheld
	for i := range n {
		ref := index.ResourceKey{Type: Endpoints, Name: fmt.Sprintf("e%d", r.IntN(1000))}
		w := Withheld{
			Resource: index.ResourceKey{Type: Cluster, Name: fmt.Sprintf("c%03d-%d", r.IntN(1000), i)},
			Action:   []string{"send", "remove"}[r.IntN(2)], Since: time.Unix(int64(r.IntN(1000)), 0),
		}
		switch r.IntN(4) {
		case 0:
			w.Reason = "not proven"
			w.Missing = []index.Lack{{Kind: "A", Held: index.ResourceVersion(r.IntN(50))}}
		case 1:
			w.Reason, w.on = "waits for "+ref.String(), []index.ResourceKey{ref}
			w.Missing = []index.Lack{{Kind: "A"}, {Kind: "B", Held: index.ResourceVersion(r.IntN(50))}}
		case 2:
			w.Reason = fmt.Sprintf("%s%d is bad", rejectedByClient, i)
		default:
			w.Reason = fmt.Sprintf("%s: would take %d", guardedWords, i)
		}
		out = append(out, w)
	}
	return out
}

// obviousGroups takes a list that is sorted by name.
func obviousGroups(list []Withheld) string {
	by := map[string]*WithheldGroup{}
	for i := range list {
		w := &list[i]
		k := w.Action + w.Class() + kindsOf(w.Missing)
		if by[k] == nil {
			by[k] = &WithheldGroup{Action: w.Action, Reason: w.Class(), Since: w.Since, Missing: slices.Clone(w.Missing), Guarded: w.Guarded()}
		}
		x := by[k]
		x.Count++
		for j := range w.Missing {
			x.Missing[j].Held = max(x.Missing[j].Held, w.Missing[j].Held)
		}
		if w.Since.Before(x.Since) {
			x.Since = w.Since
		}
		if len(x.Names) < groupNames {
			x.Names = append(x.Names, w.Resource.Name)
		}
	}
	var out []WithheldGroup
	for _, x := range by {
		out = append(out, *x)
	}
	return groupLines(out)
}

func groupLines(groups []WithheldGroup) string {
	var lines []string
	for _, g := range groups {
		lines = append(lines, fmt.Sprintf("%+v\n", g))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
