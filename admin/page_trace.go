package admin

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/tracing"
)

// traceView is a trace as a waterfall.
type traceView struct {
	frame
	Heading string
	Trace   tracing.Trace
	Ticks   []string
	Rows    []spanRow
}

// spanRow is one span. X, W and Marks are percents of the trace's duration.
type spanRow struct {
	ID, Name, About, Error, Class string
	Depth                         int
	X, W                          string
	Marks                         []string
	After, Took                   string
	Attributes                    []pair
	Events                        []eventRow
	Links                         []traceLink
}

type pair struct{ Key, Value string }

type eventRow struct {
	Name, After string
	Attributes  []pair
}

type traceLink struct {
	ID   string
	Kept bool
}

func (s *Server) tracePage(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	t, ok := s.trace(id)
	if !ok {
		s.problemPage(w, r, errNoTrace(id))
		return
	}
	v := traceView{frame: s.frame(r, "Trace", false), Trace: t, Heading: headingOf(&t)}
	total := max(time.Duration(t.Duration), time.Microsecond)
	for i := range 4 {
		v.Ticks = append(v.Ticks, took(total*time.Duration(i)/4))
	}
	for _, x := range inTree(t.Spans) {
		v.Rows = append(v.Rows, s.spanRow(x, &t, total))
	}
	s.render(w, http.StatusOK, "trace", &v)
}

func errNoTrace(id string) error {
	if _, err := trace.TraceIDFromHex(id); err != nil {
		return fmt.Errorf("%q is not a trace's id: it has 32 hexadecimal digits", id)
	}
	return fmt.Errorf("trace %s is not in memory: the last ones alone are; look it up where traces are exported to, by OTEL_EXPORTER_OTLP_ENDPOINT", id)
}

func headingOf(t *tracing.Trace) string {
	if len(t.Spans) == 0 {
		return "Trace"
	}
	out := spanName(t.Spans[0].Name)
	if names := objectsOf(t); names != nil && t.Spans[0].Name == tracing.SpanWatchEvent {
		out += ": " + someNames(names)
	}
	return strings.ToUpper(out[:1]) + out[1:]
}

// placed is a span with its depth below a root.
type placed struct {
	*tracing.Span
	depth int
}

// maxDepth is how far the page indents.
const maxDepth = 6

// inTree puts spans behind their parents, by start. Those whose parent is not there
// are roots.
func inTree(spans []tracing.Span) []placed {
	children := map[string][]*tracing.Span{}
	known := map[string]bool{}
	for i := range spans {
		known[spans[i].ID] = true
	}
	for i := range spans {
		parent := spans[i].Parent
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], &spans[i])
	}
	var out []placed
	var visit func(parent string, depth int)
	visit = func(parent string, depth int) {
		for _, x := range children[parent] {
			out = append(out, placed{x, min(depth, maxDepth)})
			visit(x.ID, depth+1)
		}
	}
	visit("", 0)
	return out
}

func (s *Server) spanRow(x placed, t *tracing.Trace, total time.Duration) spanRow {
	percent := func(d time.Duration) string { return fmt.Sprintf("%.2f", 100*float64(d)/float64(total)) }
	after := x.Start.Sub(t.Start)
	row := spanRow{
		ID: x.ID, Name: spanName(x.Name), About: aboutSpan(x.Span), Error: x.Error, Class: classOf(x.Span), Depth: x.depth,
		X: percent(after), W: percent(max(time.Duration(x.Duration), total/250)),
		After: took(after), Took: took(time.Duration(x.Duration)), Attributes: pairs(x.Attributes),
	}
	for _, e := range x.Events {
		at := e.Time.Sub(t.Start)
		row.Marks = append(row.Marks, percent(at))
		row.Events = append(row.Events, eventRow{spanName(e.Name), took(at), pairs(e.Attributes)})
	}
	for _, id := range x.Links {
		row.Links = append(row.Links, traceLink{id, s.traceKept(id)})
	}
	return row
}

func pairs(attributes map[string]string) []pair {
	out := make([]pair, 0, len(attributes))
	for _, k := range slices.Sorted(maps.Keys(attributes)) {
		out = append(out, pair{k, attributes[k]})
	}
	return out
}

// aboutSpan says what tells one span from others of its name.
func aboutSpan(x *tracing.Span) string {
	var parts []string
	for _, key := range []string{string(tracing.AttrNode), string(tracing.AttrTypeURL), string(tracing.AttrDerivation), string(tracing.AttrKind), string(tracing.AttrEventType), string(tracing.AttrObjectName), string(tracing.AttrResourceNames), string(tracing.AttrErrorDetail)} {
		value := x.Attributes[key]
		if key == string(tracing.AttrTypeURL) {
			value = shortType(value)
		}
		if list := words(value); len(list) > 0 && strings.HasPrefix(value, "[") {
			value = someNames(list)
		}
		if value != "" {
			parts = append(parts, value)
		}
	}
	return strings.Join(parts, " · ")
}

// classOf gives the colour of a span's bar.
func classOf(x *tracing.Span) string {
	switch {
	case x.Error != "" || x.Name == tracing.SpanNack:
		return "error"
	case x.Name == tracing.SpanResponse:
		return "response"
	case x.Name == tracing.SpanAck:
		return "ack"
	case x.Name == tracing.SpanCommit || x.Name == tracing.SpanDerive:
		return "commit"
	}
	return "source"
}
