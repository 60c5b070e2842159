package admin

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// How many rows of each list the overview shows.
const (
	shownFindings = 8
	shownEnvoys   = 10
	shownWithheld = 10
	shownProblems = 8
	shownChanges  = 12
)

// overview is the content of the first page. Each list is a part; More says how
// much is left out.
type overview struct {
	frame
	Status
	Verdict       chip
	Figures       []figure
	Attention     []Finding
	MoreAttention int
	Kinds         []kindLine
	Envoys        []envoyLine
	EnvoyCount    int
	MoreEnvoys    int
	Withheld      []Withheld
	MoreWithheld  int
	Problems      []index.Problem
	MoreProblems  int
	Recent        []recentChange
}

type figure struct{ Name, Value, Href string }

type kindLine struct {
	Kind
	Chip    chip
	Proof   string
	Waiting int
}

func (s *Server) overviewPage(w http.ResponseWriter, r *http.Request) {
	st := s.Status()
	v := overview{frame: s.frame(r, "Overview", true), Status: st, EnvoyCount: len(st.Streams)}
	v.Attention, v.MoreAttention = first(st.Attention, shownFindings)
	v.Verdict = verdict(&st)
	v.Kinds = kindLines(&st)
	lines := append(s.goneLines(st.Departed), s.envoyLines(st.Streams)...)
	v.Envoys, v.MoreEnvoys = first(lines, shownEnvoys)
	v.Withheld, v.MoreWithheld = first(st.Withheld, shownWithheld)
	v.Problems, _ = first(st.Problems, shownProblems)
	v.MoreProblems = st.ProblemCount - len(v.Problems)
	v.Recent = s.recent(shownChanges)
	v.Figures = figures(&st)
	s.render(w, http.StatusOK, "overview", &v)
}

// first gives the first few of a list, and how many are left.
func first[T any](list []T, most int) (shown []T, left int) {
	n := min(len(list), most)
	return list[:n], len(list) - n
}

// verdict says in one line how it stands.
func verdict(st *Status) chip {
	if len(st.Attention) == 0 {
		if len(st.Streams) == 0 {
			return chip{Neutral, "All is known; no Envoy is connected"}
		}
		return chip{Good, "All is known, and every Envoy has it"}
	}
	worst := st.Attention[0].Severity
	switch worst {
	case Bad:
		return chip{Bad, "Something needs you"}
	case Warn:
		return chip{Warn, "Something to look at"}
	}
	return chip{Neutral, "Still getting to know what there is"}
}

func figures(st *Status) []figure {
	withheld, objects, resources := 0, 0, 0
	for _, w := range st.Withheld {
		withheld += w.Count
	}
	for _, k := range st.Kinds {
		objects += k.Objects
	}
	for _, c := range st.Resources {
		resources += c.Resources
	}
	return []figure{
		{"Envoys", count(len(st.Streams)), "/view/envoys"},
		{"Withheld", count(withheld), "#withheld"},
		{"Problems", count(st.ProblemCount), "/view/problems"},
		{"Objects", count(objects), "#kinds"},
		{"Resources", count(resources), "#resources"},
		{"Revision", strconv.FormatUint(uint64(st.Revision), 10), "/view/changes"},
	}
}

func kindLines(st *Status) []kindLine {
	out := make([]kindLine, 0, len(st.Kinds))
	for _, k := range st.Kinds {
		l := kindLine{Kind: k, Chip: chip{Good, k.State}, Waiting: st.waitingFor(k.Kind)}
		switch {
		case !k.Complete && (k.State == string(index.Forbidden) || k.State == string(index.Failing)):
			l.Chip.Level = Bad
		case k.State == string(index.Forbidden) || k.State == string(index.Failing):
			l.Chip.Level = Warn
		case !k.Complete:
			l.Chip.Level = Neutral
		}
		switch {
		case !k.Complete:
			l.Proof = "not complete"
		case k.Frontier == "" || k.Frontier == "0":
			l.Proof = "complete"
		default:
			l.Proof = "complete up to " + k.Frontier
		}
		out = append(out, l)
	}
	return out
}

// envoyLine is one Envoy in a line.
type envoyLine struct {
	Name, Peer                                 string
	Connected                                  time.Time
	Chip                                       chip
	Unanswered                                 string
	InFlight, Behind, Withheld, Rejected, Held int
}

// envoyLines gives the Envoys, the worst first.
func (s *Server) envoyLines(streams []delta.StreamStatus) []envoyLine {
	out := make([]envoyLine, 0, len(streams))
	for i := range streams {
		out = append(out, s.envoyLine(&streams[i]))
	}
	slices.SortStableFunc(out, func(a, b envoyLine) int {
		return cmp.Or(a.Chip.Level.rank()-b.Chip.Level.rank(), cmp.Compare(b.Rejected, a.Rejected), cmp.Compare(b.Withheld, a.Withheld), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// goneLines are Envoys that fell silent and were cut off.
func (s *Server) goneLines(departed []delta.Departed) []envoyLine {
	var out []envoyLine
	for _, d := range departed {
		if _, missed := s.departedFinding(d); missed {
			out = append(out, envoyLine{Name: cmp.Or(d.Node, "(no node id)"), Peer: d.Peer, Chip: chip{Bad, "gone"}, Unanswered: age(d.Ended.Sub(d.Unanswered))})
		}
	}
	return out
}

func (s *Server) envoyLine(x *delta.StreamStatus) envoyLine {
	l := envoyLine{Name: cmp.Or(x.Node, "(no node id)"), Peer: x.Peer, Connected: x.Connected, Unanswered: "–"}
	for _, t := range x.Types {
		l.InFlight += t.InFlight
		l.Withheld += t.WithheldCount()
		l.Rejected += len(t.Quarantined)
		l.Held += t.Held
	}
	since, behind := unanswered(x)
	l.Behind = behind
	waits := time.Duration(0)
	if !since.IsZero() {
		waits = s.now().Sub(since)
		l.Unanswered = age(waits)
	}
	l.Chip = l.state(waits, len(x.Types), x.Busy)
	return l
}

func (l *envoyLine) state(waits time.Duration, types int, busy bool) chip {
	switch {
	case waits >= slowAnswer:
		return chip{Bad, "does not answer"}
	case l.Rejected > 0:
		return chip{Bad, fmt.Sprintf("rejects %d", l.Rejected)}
	case l.Withheld > 0:
		return chip{Warn, "waits"}
	case busy:
		return chip{Neutral, "being worked on"}
	case types == 0:
		return chip{Neutral, "has asked for nothing yet"}
	case l.InFlight > 0:
		return chip{Neutral, "answers soon"}
	}
	return chip{Good, "has everything"}
}
