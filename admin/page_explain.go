package admin

import (
	"errors"
	"net/http"
	"strings"
)

// explainView is an explanation with what the page makes of it.
type explainView struct {
	frame
	X         *Explanation
	Connected bool // some Envoy is
	Graph     *graph
	Lagging   []lagging
	Recent    []recentChange
}

// lagging is an Envoy that does not have the current version of a resource.
type lagging struct {
	Envoy, Resource, Why, Version string
	Chip                          chip
}

// maxLagging bounds the rows of Envoys that lag.
const maxLagging = 50

func (s *Server) explainPage(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query().Get("q")
	x, err := s.Explain(query)
	if errors.Is(err, errEmptyQuery) {
		http.Redirect(w, r, "/view/search", http.StatusSeeOther)
		return
	}
	if err != nil {
		s.problemPage(w, r, err)
		return
	}
	v := explainView{frame: s.frame(r, x.Subject, true), X: x, Connected: len(s.o.Streams()) > 0}
	v.Query = query
	if strings.HasPrefix(x.Subject, "host ") {
		v.Graph = s.hostGraph(x)
	}
	v.Recent = s.withTraces(x.Changes)
	v.Lagging = lagOf(x)
	s.render(w, http.StatusOK, "explain", &v)
}

func lagOf(x *Explanation) []lagging {
	var out []lagging
	for i := range x.Resources {
		r := &x.Resources[i]
		for j := range r.Envoys {
			h := &r.Envoys[j]
			if h.State == holdsCurrent || h.State == holdsNothing || h.State == notAsked || len(out) >= maxLagging {
				continue
			}
			out = append(out, lagging{
				Envoy: envoyName(h), Resource: r.String(), Why: reasonOf(h), Version: h.Version,
				Chip: chip{holderLevels[h.State], h.State},
			})
		}
	}
	return out
}

// reasonOf says why an Envoy does not have the current version.
func reasonOf(h *HolderView) string {
	switch {
	case h.Busy:
		return "Its stream is in the middle of a step; ask again."
	case h.Quarantined != nil:
		return "The Envoy says: " + h.Quarantined.Message
	case h.Withheld != nil:
		return withheldReason(h)
	case !h.Sent.IsZero():
		return "Sent at " + clock(h.Sent) + ", not answered."
	case h.Pending:
		return "It leaves when the Envoy has answered what is in flight."
	}
	return "It has another version."
}

func withheldReason(h *HolderView) string {
	out := "Its " + map[string]string{"remove": "removal"}[h.Withheld.Action]
	if h.Withheld.Action != "remove" {
		out = "It"
	}
	out += " is withheld since " + clock(h.Withheld.Since) + ": " + h.Withheld.Reason
	for i, l := range h.Withheld.Missing {
		sep := ", "
		if i == 0 {
			sep = "; missing: "
		}
		out += sep + string(l.Kind)
	}
	return out + "."
}
