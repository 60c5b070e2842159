package admin

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// graph shows one host from its objects to its endpoints, in columns:
//
//	HTTPProxy, Ingress ─▶ RouteConfiguration ─▶ Cluster ─▶ endpoints
//	                  └─▶ Secret
//
// Its numbers are pixels.
type graph struct {
	Label         string
	Width, Height int
	Columns       []graphColumn
	Nodes         []*graphNode
	Edges         []graphEdge
}

type graphColumn struct {
	Name  string
	X     int
	More  int // nodes that have no place
	MoreY int
	nodes []*graphNode
}

type graphNode struct {
	Kind, Name, Note string
	Short, ShortNote string // as much of them as fits
	About            string
	Level            Level
	X, Y, W, H       int
	TX, Y1, Y2, Y3   int // of the texts
}

type graphEdge struct{ X1, Y1, XM, X2, Y2 int }

// Measures.
const (
	nodeWidth, nodeHeight = 252, 62
	columnGap, rowGap     = 58, 14
	graphTop              = 26
	columnMost            = 8 // nodes
	nodeLetters           = 27
)

// hostGraph draws what the explanation of a host has.
func (s *Server) hostGraph(x *Explanation) *graph {
	b := &graphBuilder{
		graph:   &graph{Label: "From the objects of " + x.Subject + " to its endpoints"},
		columns: []graphColumn{{Name: "Objects"}, {Name: "Routes and certificates"}, {Name: "Clusters"}, {Name: "Endpoints"}},
		nodes:   map[string]*graphNode{}, snap: s.o.Index.Snapshot(),
	}
	for i := range x.Objects {
		if o := &x.Objects[i]; o.Kind == kinds.HTTPProxy || o.Kind == kinds.Ingress {
			b.object(o)
		}
	}
	for i := range x.Resources {
		b.resource(&x.Resources[i])
	}
	b.connect(x)
	return b.finish()
}

type graphBuilder struct {
	graph   *graph
	columns []graphColumn
	nodes   map[string]*graphNode // by what explain calls them
	edges   [][2]string
	snap    *index.Snapshot
}

func (b *graphBuilder) add(column int, n *graphNode) {
	c := &b.columns[column]
	if len(c.nodes) >= columnMost {
		c.More++
		return
	}
	n.Short, n.ShortNote = fit(n.Name, nodeLetters), fit(n.Note, nodeLetters+6)
	c.nodes = append(c.nodes, n)
	b.nodes[n.About] = n
}

// fit keeps both ends of a name: the beginning tells http/ from https/, the end one
// name from another.
func fit(s string, letters int) string {
	const head = 7
	r := []rune(s)
	if len(r) <= letters {
		return s
	}
	return string(r[:head]) + "…" + string(r[len(r)-letters+head+1:])
}

func (b *graphBuilder) object(o *ObjectView) {
	c := objectChip(*o)
	note := c.Text
	if o.Version != "" {
		note += ", version " + o.Version
	}
	b.add(0, &graphNode{Kind: string(o.Kind), Name: o.Namespace + "/" + o.Name, Note: note, About: about(o.ObjectKey), Level: c.Level})
}

var graphColumns = map[string]int{delta.RouteConfiguration: 1, delta.Secret: 1, delta.Cluster: 2, delta.Endpoints: 3}

func (b *graphBuilder) resource(r *ResourceView) {
	column, shown := graphColumns[r.Type]
	if !shown {
		return
	}
	level, note := standing(r)
	if r.Type == delta.Endpoints {
		note = b.addresses(r.ResourceKey) + "; " + note
	}
	b.add(column, &graphNode{Kind: shortType(r.Type), Name: r.Name, Note: note, About: aboutResource(r.ResourceKey), Level: level})
}

// standing says how it stands with a resource at all Envoys.
func standing(r *ResourceView) (Level, string) {
	if r.State != resourceLive {
		return Warn, r.State
	}
	level, current, asking := Good, 0, 0
	for _, h := range r.Envoys {
		if h.State == notAsked {
			continue
		}
		asking++
		if h.State == holdsCurrent {
			current++
			continue
		}
		if l := holderLevels[h.State]; l.rank() < level.rank() {
			level = l
		}
	}
	if asking == 0 {
		return Neutral, "no Envoy asks for it"
	}
	if current == asking {
		return level, fmt.Sprintf("at %s", plural(asking, "Envoy"))
	}
	return level, fmt.Sprintf("at %d of %s", current, plural(asking, "Envoy"))
}

// addresses counts a ClusterLoadAssignment's endpoints.
func (b *graphBuilder) addresses(k index.ResourceKey) string {
	r := b.snap.Resource(k)
	if r == nil {
		return "none"
	}
	list := endpointsOf(r)
	switch len(list) {
	case 0:
		return "no endpoint"
	case 1:
		return list[0]
	}
	return plural(len(list), "endpoint")
}

// connect draws the edges: from sources to what is made of them, and along
// references. What several sources make is drawn from each.
func (b *graphBuilder) connect(x *Explanation) {
	for i := range x.Resources {
		r := &x.Resources[i]
		to := aboutResource(r.ResourceKey)
		for _, source := range r.Sources {
			b.edge(about(source), to)
		}
		if r.Type == delta.Secret {
			for j := range x.Objects {
				if b.uses(x.Objects[j].ObjectKey) {
					b.edge(about(x.Objects[j].ObjectKey), to)
				}
			}
		}
		for _, ref := range r.Refs {
			b.edge(to, aboutResource(ref))
		}
	}
}

// uses: the objects that people write ask for the certificate.
func (b *graphBuilder) uses(k index.ObjectKey) bool {
	return (k.Kind == kinds.HTTPProxy || k.Kind == kinds.Ingress) && b.nodes[about(k)] != nil
}

func (b *graphBuilder) edge(from, to string) {
	if b.nodes[from] != nil && b.nodes[to] != nil && from != to {
		b.edges = append(b.edges, [2]string{from, to})
	}
}

// finish gives the nodes their places.
func (b *graphBuilder) finish() *graph {
	g := b.graph
	rows := 0
	for i := range b.columns {
		c := &b.columns[i]
		c.X = i * (nodeWidth + columnGap)
		b.arrange(c)
		for j, n := range c.nodes {
			n.place(c.X, graphTop+j*(nodeHeight+rowGap))
		}
		rows = max(rows, len(c.nodes))
		c.MoreY = graphTop + len(c.nodes)*(nodeHeight+rowGap) + 14
		g.Nodes = append(g.Nodes, c.nodes...)
	}
	g.Columns = b.columns
	g.Width = len(b.columns)*nodeWidth + (len(b.columns)-1)*columnGap
	g.Height = graphTop + rows*(nodeHeight+rowGap) - rowGap + 4
	if slices.ContainsFunc(b.columns, func(c graphColumn) bool { return c.More > 0 }) {
		g.Height += 24
	}
	b.draw()
	return g
}

// arrange puts the nodes of a column where those that lead to them are.
func (b *graphBuilder) arrange(c *graphColumn) {
	weight := map[*graphNode]int{}
	for _, n := range c.nodes {
		sum, count := 0, 0
		for _, e := range b.edges {
			if from := b.nodes[e[0]]; b.nodes[e[1]] == n && from.X < c.X {
				sum += from.Y
				count++
			}
		}
		weight[n] = sum / max(count, 1)
	}
	slices.SortStableFunc(c.nodes, func(x, y *graphNode) int {
		return cmp.Or(cmp.Compare(weight[x], weight[y]), strings.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name))
	})
}

func (n *graphNode) place(x, y int) {
	n.X, n.Y, n.W, n.H = x, y, nodeWidth, nodeHeight
	n.TX, n.Y1, n.Y2, n.Y3 = x+14, y+18, y+36, y+53
}

func (b *graphBuilder) draw() {
	for _, e := range b.edges {
		from, to := b.nodes[e[0]], b.nodes[e[1]]
		if from.X >= to.X {
			continue // within a column, or back
		}
		x1, x2 := from.X+from.W, to.X
		b.graph.Edges = append(b.graph.Edges, graphEdge{x1, from.Y + from.H/2, (x1 + x2) / 2, x2, to.Y + to.H/2})
	}
}
