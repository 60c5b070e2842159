package admin

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// maxNear is how many names a person is offered in the place of one that is not there.
const maxNear = 6

// notFound looks for names like the one that is not there.
func (s *Server) notFound(snap *index.Snapshot, query, name string) *NotFound {
	e := &NotFound{Query: query}
	hits := s.search(snap, name, maxNear)
	for _, hit := range hits {
		if hit.distance > hits[0].distance+1 {
			break // far from the best ones
		}
		e.Near = append(e.Near, hit.Query)
	}
	var doubts []string
	for _, row := range snap.Kinds() {
		if !row.Complete() {
			doubts = append(doubts, string(row.Kind))
		}
	}
	if doubts != nil {
		e.Doubt = "it may exist all the same: not complete yet: " + strings.Join(doubts, ", ")
	}
	return e
}

// Hit is something that a search found.
type Hit struct {
	// Query explains it.
	Query string `json:"query"`
	// What it is: "host" or a kind.
	What string `json:"what"`
	Name string `json:"name"`

	distance int
}

// search finds hosts and objects whose names contain the words, or are a few letters
// away: the nearest first.
func (s *Server) search(snap *index.Snapshot, text string, most int) []Hit {
	text = strings.ToLower(strings.TrimSpace(text))
	if text == "" {
		return nil
	}
	n := ranking{most: most}
	for _, host := range translate.Hosts(snap) {
		n.consider(Hit{Query: "vhost/" + host, What: "host", Name: host}, distance(text, host))
	}
	for i := range kinds.All {
		k := kinds.All[i].Kind
		for o := range snap.Objects(k) {
			n.considerObject(text, o)
		}
	}
	return n.hits
}

// ranking keeps the best few hits.
type ranking struct {
	most int
	hits []Hit
}

// considerObject: the text may be the name alone, or namespace/name.
func (n *ranking) considerObject(text string, o *index.Object) {
	d := distance(text, o.Name)
	if d > 0 && strings.Contains(text, "/") {
		d = min(d, distance(text, o.Namespace+"/"+o.Name))
	}
	if d < tooFar {
		n.consider(Hit{Query: about(o.ObjectKey), What: string(o.Kind), Name: strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")}, d)
	}
}

func (n *ranking) consider(h Hit, d int) {
	if d >= tooFar || (len(n.hits) == n.most && d >= n.hits[n.most-1].distance) {
		return
	}
	h.distance = d
	i, _ := slices.BinarySearchFunc(n.hits, d, func(x Hit, d int) int { return cmp.Or(cmp.Compare(x.distance, d), -1) })
	n.hits = slices.Insert(n.hits, i, h)
	n.hits = n.hits[:min(len(n.hits), n.most)]
}

// tooFar is a distance that is no likeness.
const tooFar = 1000

// distance: 0 for the same name, 1 for one that begins with the text, 2 for one that
// contains it, 3 and more for one with a few letters that differ.
func distance(text, name string) int {
	switch {
	case text == name:
		return 0
	case strings.HasPrefix(name, text):
		return 1
	case strings.Contains(name, text):
		return 2
	}
	most := min(3, len(text)/3)
	if d := edits(text, name, most); d <= most {
		return 2 + d
	}
	return tooFar
}

// edits counts the letters to insert, drop or change, up to a bound: bytes, since
// names in Kubernetes are ASCII.
func edits(a, b string, most int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	var rows [2][64]int
	if len(b) >= len(rows[0]) {
		return most + 1
	}
	prev, row := &rows[0], &rows[1]
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		best := row[0]
		for j := range len(b) {
			change := prev[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, prev[j+1]+1, row[j]+1)
			best = min(best, row[j+1])
		}
		if best > most {
			return best
		}
		prev, row = row, prev
	}
	return prev[len(b)]
}
