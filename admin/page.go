package admin

import (
	_ "embed"
	"html/template"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/tracing"
)

//go:embed page.html
var pageSource string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"short":   shortType,
	"objects": objectsOf,
	"clock": func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format("2006-01-02 15:04:05Z")
	},
}).Parse(pageSource))

// pageTraces is how many traces the page shows.
const pageTraces = 15

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	view := struct {
		Status
		Traces []tracing.Trace
	}{s.view(math.MaxInt), s.recentTraces(pageTraces)}
	if err := pageTemplate.Execute(w, view); err != nil {
		s.o.Logger.Debug("admin page not delivered", "error", err)
	}
}

// objectsOf gives what a trace is about: the object names of its first span that
// has any.
func objectsOf(t tracing.Trace) string {
	for _, s := range t.Spans {
		if names := s.Attributes[string(tracing.AttrObjectName)]; names != "" {
			return strings.Trim(strings.ReplaceAll(names, `","`, " "), `[]"`)
		}
	}
	return ""
}
