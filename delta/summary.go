package delta

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// WithheldGroup sums up what is withheld of one type alike: the same action, the same
// class of reason, the same missing kinds.
type WithheldGroup struct {
	Action string `json:"action"`
	// Reason is a Withheld's Class.
	Reason string `json:"reason"`
	// Missing has for each kind the highest version that any of them needs.
	Missing []index.Lack `json:"missing,omitempty"`
	Guarded bool         `json:"guarded,omitempty"`
	Count   int          `json:"count"`
	Since   time.Time    `json:"since"` // of the oldest
	// Names are the first few by name.
	Names []string `json:"names"`
}

const (
	// listed bounds TypeStatus.Withheld in a Summary, groupNames WithheldGroup.Names.
	listed     = 100
	groupNames = 10
)

// Summary is Status for one who asks often: of what is withheld, which may be
// everything there is, it lists the first by name and sums up all in groups. It
// costs one look at each.
func (s *Stream) Summary() StreamStatus {
	out := StreamStatus{Node: s.node, Connected: s.started, Revision: s.snap.Revision()}
	for _, url := range s.urls() {
		t := s.subs[url]
		st := t.plainStatus()
		g := grouping{}
		for name, w := range t.withheld {
			if _, again := t.pending[name]; !again {
				g.add(w)
			}
		}
		st.Withheld, st.Groups, st.WithheldTotal = g.first, g.groups(), g.count
		out.Types = append(out.Types, st)
	}
	return out
}

// Grouped gives the groups, made from Withheld where a Summary has not made them.
func (t *TypeStatus) Grouped() []WithheldGroup {
	if t.Groups != nil || len(t.Withheld) == 0 {
		return t.Groups
	}
	g := grouping{}
	for i := range t.Withheld {
		g.add(&t.Withheld[i])
	}
	return g.groups()
}

// grouping collects groups.
type grouping struct {
	count int
	first []Withheld // by name
	by    map[groupKey]*WithheldGroup
}

// groupKey is made without allocation.
type groupKey struct {
	action, class string
	kinds         [4]index.Kind // more than that are taken for the same
}

func (g *grouping) add(w *Withheld) {
	g.count++
	if len(g.first) < listed || w.Resource.Name < g.first[len(g.first)-1].Resource.Name {
		g.first = keepFirst(g.first, listed, *w, func(a, b Withheld) int { return cmp.Compare(a.Resource.Name, b.Resource.Name) })
	}
	k := groupKey{action: w.Action, class: w.stem()}
	for i := range w.Missing[:min(len(w.Missing), len(k.kinds))] {
		k.kinds[i] = w.Missing[i].Kind
	}
	x := g.by[k]
	if x == nil {
		if g.by == nil {
			g.by = map[groupKey]*WithheldGroup{}
		}
		x = &WithheldGroup{Action: w.Action, Reason: w.Class(), Missing: slices.Clone(w.Missing), Guarded: w.Guarded(), Since: w.Since}
		g.by[k] = x
	}
	x.add(w)
}

func (x *WithheldGroup) add(w *Withheld) {
	x.Count++
	if w.Since.Before(x.Since) {
		x.Since = w.Since
	}
	for i := range w.Missing[:min(len(w.Missing), len(x.Missing))] {
		x.Missing[i].Held = max(x.Missing[i].Held, w.Missing[i].Held)
	}
	x.Names = keepFirst(x.Names, groupNames, w.Resource.Name, strings.Compare)
}

// stem is Class without the words that take time to make.
func (w *Withheld) stem() string {
	if len(w.on) > 0 && w.on[0].Name != "" {
		if stem, ok := strings.CutSuffix(w.Reason, w.on[0].Name); ok {
			return stem
		}
	}
	return w.Class()
}

// keepFirst inserts x into a sorted list that keeps its first few, each once.
func keepFirst[T any](list []T, most int, x T, compare func(a, b T) int) []T {
	if len(list) == most && compare(list[most-1], x) <= 0 {
		return list
	}
	i, twice := slices.BinarySearchFunc(list, x, compare)
	if twice {
		return list
	}
	if len(list) == most {
		list = list[:most-1]
	}
	return slices.Insert(list, i, x)
}

func (g *grouping) groups() []WithheldGroup {
	out := make([]WithheldGroup, 0, len(g.by))
	for _, x := range g.by {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b WithheldGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Reason, b.Reason), cmp.Compare(kindsOf(a.Missing), kindsOf(b.Missing)))
	})
	return out
}

func kindsOf(missing []index.Lack) string {
	var b strings.Builder
	for _, l := range missing {
		b.WriteString(string(l.Kind))
		b.WriteByte(' ')
	}
	return b.String()
}
