package admin

import (
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// recentChange is a change with what its trace tells of it.
type recentChange struct {
	Change
	// Objects that changed, as far as the trace names them; What it was else.
	Objects       []string
	MoreObjects   int
	What          string
	Shown         []index.ResourceKey
	MoreResources int
	Took          string
	Rejected      int
}

const (
	shownNames = 3 // objects or resources of one change
	pageRows   = 100
)

// recent gives the last changes, newest first.
func (s *Server) recent(most int) []recentChange {
	list := s.changes.joined(most)
	for i := range list {
		list[i].Kept = s.traceKept(list[i].Trace)
	}
	return s.withTraces(list)
}

func (s *Server) withTraces(list []Change) []recentChange {
	out := make([]recentChange, 0, len(list))
	for _, c := range list {
		x := recentChange{Change: c, What: "kinds and their state"}
		x.Shown, _ = first(c.Resources, shownNames)
		x.MoreResources = c.Count - len(x.Shown)
		if t, ok := s.trace(c.Trace); ok {
			x.tell(&t)
		}
		out = append(out, x)
	}
	return out
}

func (s *Server) trace(id string) (tracing.Trace, bool) {
	if s.o.Traces == nil || id == "" {
		return tracing.Trace{}, false
	}
	return s.o.Traces.Trace(id)
}

func (c *recentChange) tell(t *tracing.Trace) {
	c.Kept, c.Took = true, took(time.Duration(t.Duration))
	if len(t.Spans) > 0 && t.Spans[0].Name == tracing.SpanWatchEvent {
		c.Objects, c.MoreObjects = first(objectsOf(t), shownNames)
	}
	if len(t.Spans) > 0 {
		c.What = spanName(t.Spans[0].Name)
		if kind := t.Spans[0].Attributes[string(tracing.AttrKind)]; kind != "" {
			c.What += " of " + strings.Join(words(kind), ", ")
		}
	}
	for _, span := range t.Spans {
		if span.Name == tracing.SpanNack {
			c.Rejected++
		}
	}
}

// objectsOf gives what a trace is about: the object names of its first span that
// has any.
func objectsOf(t *tracing.Trace) []string {
	for i := range t.Spans {
		if names := words(t.Spans[i].Attributes[string(tracing.AttrObjectName)]); len(names) > 0 {
			return names
		}
	}
	return nil
}

// words takes an attribute apart that may be a list, which the view shows as JSON.
func words(attribute string) []string {
	if !strings.HasPrefix(attribute, "[") {
		if attribute == "" {
			return nil
		}
		return []string{attribute}
	}
	var out []string
	for x := range strings.SplitSeq(strings.Trim(attribute, "[]"), ",") {
		if x = strings.Trim(x, `" `); x != "" {
			out = append(out, x)
		}
	}
	return out
}

// spanName is a span's name without what all have in common.
func spanName(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "holdfast."), "_", " ")
}

func (s *Server) changesPage(w http.ResponseWriter, r *http.Request) {
	v := s.list(r, "Changes", "changes", true)
	v.Note = "The last changes of Envoy's configuration that are in memory, the newest first."
	v.Recent = s.recent(pageRows)
	s.render(w, http.StatusOK, "lists", v)
}
