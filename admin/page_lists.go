package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/translate"
)

// listView is a page with one list.
type listView struct {
	frame
	Heading, Note, List, Filter string
	Pager                       pager

	Hosts      []hostLine
	Problems   []index.Problem
	Envoys     []envoyLine
	EnvoyTypes []envoyTypes
	Recent     []recentChange
	Hits       []Hit
}

func (s *Server) list(r *http.Request, heading, list string, live bool) *listView {
	return &listView{frame: s.frame(r, heading, live), Heading: heading, List: list}
}

// pager leads through a long list.
type pager struct {
	First, To, Total, Last int
	Before, After          string
}

// paged gives the part of a list that ?page= asks for.
func paged[T any](r *http.Request, list []T) ([]T, pager) {
	last := max(1, (len(list)+pageRows-1)/pageRows)
	n, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		n = 1
	}
	n = min(max(n, 1), last)
	lo := (n - 1) * pageRows
	hi := min(lo+pageRows, len(list))
	p := pager{First: lo + 1, To: hi, Total: len(list), Last: last}
	if n > 1 {
		p.Before = pageLink(r, n-1)
	}
	if n < last {
		p.After = pageLink(r, n+1)
	}
	return list[lo:hi], p
}

func pageLink(r *http.Request, n int) string {
	q := r.URL.Query()
	q.Set("page", strconv.Itoa(n))
	return (&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String()
}

// hostLine is a host in a line.
type hostLine struct {
	Host, About string
	Sources     []index.ObjectKey
	Secure      bool
	Clusters    int
	Chip        chip
}

func (s *Server) hostsPage(w http.ResponseWriter, r *http.Request) {
	v := s.list(r, "Hosts", "hosts", false)
	v.Filter = strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))
	snap := s.o.Index.Snapshot()
	all := translate.Hosts(snap)
	if v.Filter != "" {
		all = slices.DeleteFunc(all, func(h string) bool { return !strings.Contains(h, v.Filter) })
	}
	v.Note = plural(len(all), "host") + " that some object names."
	var shown []string
	shown, v.Pager = paged(r, all)
	v.Hosts = s.hostLines(snap, shown)
	s.render(w, http.StatusOK, "lists", v)
}

func (s *Server) hostLines(snap *index.Snapshot, hosts []string) []hostLine {
	var keys []index.ResourceKey
	for _, h := range hosts {
		keys = append(keys, hostKeys(h)...)
	}
	holders, faulty := s.holders(keys), faultyObjects(snap)
	out := make([]hostLine, 0, len(hosts))
	for _, h := range hosts {
		l := viewHost(snap, h, holders)
		if slices.ContainsFunc(l.Sources, func(k index.ObjectKey) bool { return faulty[k] }) {
			l.Chip = chip{Bad, "in part"}
		}
		out = append(out, l)
	}
	return out
}

// faultyObjects are those of which a part is not served.
func faultyObjects(snap *index.Snapshot) map[index.ObjectKey]bool {
	out := map[index.ObjectKey]bool{}
	for _, p := range snap.Problems() {
		if p.Severity == index.Error {
			out[p.Object] = true
		}
	}
	return out
}

// hostKeys are the RouteConfigurations of a host, on the plain listener and behind TLS.
func hostKeys(host string) []index.ResourceKey {
	var out []index.ResourceKey
	for _, name := range translate.RouteNames(host) {
		out = append(out, index.ResourceKey{Type: delta.RouteConfiguration, Name: name})
	}
	return out
}

func viewHost(snap *index.Snapshot, host string, holders map[index.ResourceKey][]delta.Holder) hostLine {
	l := hostLine{Host: host, About: "vhost/" + host}
	served, lacking, envoys := false, 0, 0
	clusters := map[index.ResourceKey]bool{}
	for i, k := range hostKeys(host) {
		r := snap.Resource(k)
		if r == nil {
			continue
		}
		served, l.Secure = true, l.Secure || i > 0
		for _, source := range r.Sources {
			if !slices.Contains(l.Sources, source) {
				l.Sources = append(l.Sources, source)
			}
		}
		for _, ref := range r.Refs {
			clusters[ref] = true
		}
		for _, h := range holders[k] {
			envoys++
			if !h.Current {
				lacking++
			}
		}
	}
	l.Clusters = len(clusters)
	l.Chip = hostChip(served, lacking, envoys)
	return l
}

func hostChip(served bool, lacking, envoys int) chip {
	switch {
	case !served:
		return chip{Bad, "not served"}
	case lacking > 0:
		return chip{Warn, "not everywhere yet"}
	case envoys == 0:
		return chip{Neutral, "no Envoy asks for it"}
	}
	return chip{Good, "served"}
}

func (s *Server) problemsPage(w http.ResponseWriter, r *http.Request) {
	v := s.list(r, "Problems", "problems", false)
	var st Status
	all := s.o.Index.Snapshot().Problems()
	st.problems(all)
	v.Note = fmt.Sprintf("%s, of which %s. An error keeps a part of the object out of service, a warning does not.", plural(len(all), "problem"), plural(st.errors, "error"))
	v.Problems, v.Pager = paged(r, all)
	s.render(w, http.StatusOK, "lists", v)
}

// envoyTypes is an Envoy type by type.
type envoyTypes struct {
	Name  string
	Types []delta.TypeStatus
}

// envoyDetails is how many Envoys are shown type by type on one page.
const envoyDetails = 20

func (s *Server) envoysPage(w http.ResponseWriter, r *http.Request) {
	v := s.list(r, "Envoys", "envoys", true)
	streams := s.o.Streams()
	var gone []envoyLine
	if s.o.Departed != nil {
		gone = s.goneLines(s.o.Departed())
	}
	v.Note = plural(len(streams), "Envoy") + " connected to this replica, the worst first."
	v.Envoys, v.Pager = paged(r, append(gone, s.envoyLines(streams)...))
	for i := range streams[:min(len(streams), envoyDetails)] {
		v.EnvoyTypes = append(v.EnvoyTypes, envoyTypes{nodeName(streams[i].Node, streams[i].Peer), streams[i].Types})
	}
	s.render(w, http.StatusOK, "lists", v)
}

// shownHits is how many names a search shows.
const shownHits = 50

func (s *Server) searchPage(w http.ResponseWriter, r *http.Request) {
	query := strings.TrimSpace(r.URL.Query().Get("q"))
	if _, err := s.Explain(query); err == nil {
		http.Redirect(w, r, explainLink(query), http.StatusSeeOther)
		return
	}
	v := s.list(r, "Search", "search", false)
	v.Query = query
	v.Hits = s.search(s.o.Index.Snapshot(), query, shownHits)
	s.render(w, http.StatusOK, "lists", v)
}
