package admin

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// Holdings is the body of /holdings?node=ID: everything that an Envoy holds, as far
// as its ACKs tell. `holdfast diff` compares it with what the Envoy itself says.
type Holdings struct {
	Node     string         `json:"node"`
	Peer     string         `json:"peer"`
	Revision index.Revision `json:"revision"`
	Types    []TypeHoldings `json:"types"`
}

// TypeHoldings are those of one type.
type TypeHoldings struct {
	Type string `json:"type"` // type URL
	// Held gives the version by name.
	Held map[string]string `json:"held"`
	// Unsettled are the names on their way: the Envoy may have them by now or not.
	Unsettled []string `json:"unsettled,omitempty"`
	// Gone are the names that the Envoy asks for though there is no such resource: it
	// keeps what it had of them until what refers to them has drained.
	Gone []string `json:"gone,omitempty"`
}

func (s *Server) holdings(w http.ResponseWriter, r *http.Request) {
	node := r.URL.Query().Get("node")
	streams := s.o.Streams()
	i := slices.IndexFunc(streams, func(x delta.StreamStatus) bool { return x.Node == node })
	if i < 0 {
		http.Error(w, unknownNode(node, streams), http.StatusNotFound)
		return
	}
	x := streams[i]
	out := Holdings{Node: x.Node, Peer: x.Peer, Revision: x.Revision, Types: []TypeHoldings{}}
	urls := make([]string, 0, len(s.o.Types))
	for _, t := range s.o.Types {
		urls = append(urls, t.URL)
	}
	var inventories map[string]*delta.Inventory
	if s.o.Inventory != nil {
		inventories = s.o.Inventory(x.ID, urls)
	}
	for _, url := range urls {
		if v := inventories[url]; v != nil {
			out.Types = append(out.Types, viewHoldings(url, v))
		}
	}
	writeJSON(w, out)
}

func viewHoldings(url string, v *delta.Inventory) TypeHoldings {
	out := TypeHoldings{Type: url, Held: v.Versions()}
	for name := range v.Unsettled {
		out.Unsettled = append(out.Unsettled, name)
	}
	for name := range v.Gone {
		out.Gone = append(out.Gone, name)
	}
	slices.Sort(out.Unsettled)
	slices.Sort(out.Gone)
	return out
}

func unknownNode(node string, streams []delta.StreamStatus) string {
	if len(streams) == 0 {
		return fmt.Sprintf("no Envoy is connected, so not %q either: is its bootstrap that of holdfast bootstrap, and does it reach --xds-address?", node)
	}
	names := make([]string, 0, len(streams))
	for _, x := range streams {
		names = append(names, nodeName(x.Node, x.Peer))
	}
	return fmt.Sprintf("no Envoy with the node id %q is connected here; those that are: %s", node, strings.Join(names[:min(len(names), 50)], ", "))
}
