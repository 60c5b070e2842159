package admin

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// Status is the body of /status. Fields are added to it, never renamed or
// removed.
type Status struct {
	Version  string         `json:"version"`
	Revision index.Revision `json:"revision"`
	// Source is the id of the cluster or folder, as it is in version tokens.
	Source string `json:"source"`
	// Serving: Envoys can connect. Complete: every kind is.
	Serving bool `json:"serving"`
	// Attention is what a person must know at first sight, the worst first.
	Attention []Finding   `json:"attention"`
	Complete  bool        `json:"complete"`
	Kinds     []Kind      `json:"kinds"`
	Resources []TypeCount `json:"resources"`
	// Streams are the connected Envoys, in the order in which they connected. For
	// each type at most maxWithheld withheld resources are listed; Withheld
	// counts them all.
	Streams []delta.StreamStatus `json:"streams"`
	// Departed are Envoys that left and have not come back, the last first.
	Departed []delta.Departed `json:"departed"`
	Withheld []Withheld       `json:"withheld"`
	// Problems are the first maxProblems of ProblemCount.
	Problems     []index.Problem `json:"problems"`
	ProblemCount int             `json:"problemCount"`

	errors int // of the problems
}

// Kind is a watched kind.
type Kind struct {
	Kind  string `json:"kind"`
	State string `json:"state"`
	// Complete: that something of the kind is absent can be relied upon.
	Complete bool `json:"complete"`
	// Frontier is a resourceVersion: everything up to it has been seen. Empty
	// while the first list has not ended.
	Frontier string    `json:"frontier,omitempty"`
	Objects  int       `json:"objects"`
	Since    time.Time `json:"since,omitzero"` // when State last changed
	Error    string    `json:"error,omitempty"`
	Required bool      `json:"required,omitempty"`
}

// TypeCount counts the resources of one xDS type.
type TypeCount struct {
	Type      string `json:"type"` // type URL
	Resources int    `json:"resources"`
	// Tombstones were derived once and no longer are; streams have yet to pass them.
	Tombstones int `json:"tombstones"`
}

// Withheld sums up what is withheld from all Envoys for the same reason.
type Withheld struct {
	Type   string `json:"type"`
	Action string `json:"action"` // "send" or "remove"
	Reason string `json:"reason"`
	// Missing are the kinds that keep it back; none when it waits for an Envoy.
	Missing []index.Lack `json:"missing,omitempty"`
	// Guarded: the removal guard holds it back; POST /release lets it go.
	Guarded bool `json:"guarded,omitempty"`
	// Resources are the first few names, Count is over all resources and Envoys.
	Resources []string `json:"resources"`
	Count     int      `json:"count"`
	Envoys    int      `json:"envoys"`
	// Since is when the first of them was withheld.
	Since time.Time `json:"since"`
	// Example is what to ask explain for.
	Example string `json:"example"`
}

const (
	maxWithheld = 100 // listed for one type of one stream
	maxNames    = 10  // listed for one reason
	maxProblems = 500
)

// Status describes the present moment.
func (s *Server) Status() Status {
	snap := s.o.Index.Snapshot()
	streams := s.o.Streams()
	st := Status{
		Version: s.o.Version, Revision: snap.Revision(), Source: snap.Source(),
		Serving: s.o.Serving(), Complete: true,
		Resources: s.counts.of(snap, s.o.Types),
		Streams:   make([]delta.StreamStatus, 0, len(streams)),
		Withheld:  sumWithheld(streams),
	}
	st.problems(snap.Problems())
	for _, row := range snap.Kinds() {
		k := viewKind(row)
		st.Kinds = append(st.Kinds, k)
		st.Complete = st.Complete && k.Complete
	}
	for _, x := range streams {
		st.Streams = append(st.Streams, presentable(x))
	}
	if s.o.Departed != nil {
		st.Departed = s.o.Departed()
	}
	st.Departed = orEmpty(st.Departed)
	st.Attention = orEmpty(s.attention(&st))
	return st
}

// problems takes in the problems, the errors first.
func (st *Status) problems(all []index.Problem) {
	st.ProblemCount = len(all)
	slices.SortStableFunc(all, func(a, b index.Problem) int { return levelOf(a.Severity).rank() - levelOf(b.Severity).rank() })
	for _, p := range all {
		if p.Severity == index.Error {
			st.errors++
		}
	}
	st.Problems = orEmpty(all[:min(len(all), maxProblems)])
}

func viewKind(row *index.KindRow) Kind {
	k := Kind{
		Kind: string(row.Kind), State: string(row.State), Complete: row.Complete(), Objects: row.Objects,
		Since: row.Since, Error: row.LastError, Required: row.Required,
	}
	if row.Frontier.Observed {
		k.Frontier = row.Frontier.Version.String()
	}
	return k
}

// presentable gives a stream's status without what is too long.
func presentable(x delta.StreamStatus) delta.StreamStatus {
	x.Types = slices.Clone(x.Types)
	for i := range x.Types {
		t := &x.Types[i]
		t.Withheld = t.Withheld[:min(maxWithheld, len(t.Withheld))]
	}
	return x
}

// sumWithheld joins what the streams withhold alike, the biggest group first.
func sumWithheld(streams []delta.StreamStatus) []Withheld {
	joined := map[string]*Withheld{}
	for i := range streams {
		for j := range streams[i].Types {
			t := &streams[i].Types[j]
			for _, g := range t.Grouped() {
				k := groupKey(t.Type, &g)
				if joined[k] == nil {
					joined[k] = &Withheld{Type: t.Type, Action: g.Action, Reason: g.Reason, Missing: slices.Clone(g.Missing), Guarded: g.Guarded, Since: g.Since}
				}
				joined[k].join(&g)
			}
		}
	}
	out := make([]Withheld, 0, len(joined))
	for _, w := range joined {
		w.Example = aboutResource(index.ResourceKey{Type: w.Type, Name: w.Resources[0]})
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Withheld) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Action, b.Action), cmp.Compare(a.Reason, b.Reason),
			slices.CompareFunc(a.Missing, b.Missing, func(x, y index.Lack) int { return cmp.Compare(x.Kind, y.Kind) }))
	})
	return out
}

func groupKey(url string, g *delta.WithheldGroup) string {
	key := url + "\n" + g.Action + "\n" + g.Reason
	for _, l := range g.Missing {
		key += "\n" + string(l.Kind)
	}
	return key
}

// join adds what one stream withholds.
func (w *Withheld) join(g *delta.WithheldGroup) {
	w.Count += g.Count
	w.Envoys++
	if g.Since.Before(w.Since) {
		w.Since = g.Since
	}
	for i := range g.Missing { // the same kinds, by the group's key
		w.Missing[i].Held = max(w.Missing[i].Held, g.Missing[i].Held)
	}
	for _, name := range g.Names {
		if len(w.Resources) < maxNames && !slices.Contains(w.Resources, name) {
			w.Resources = append(w.Resources, name)
		}
	}
}
