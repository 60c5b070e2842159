package admin

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
)

// The page is plain HTML from the server, and one style sheet. The script renews
// what is marked as live, and nothing needs it.
//
//go:embed page
var pageFiles embed.FS

// templates by page: each is the layout with its own content.
var templates = map[string]*template.Template{
	"overview": parsePage("overview"),
	"lists":    parsePage("lists"),
	"explain":  parsePage("explain"),
	"trace":    parsePage("trace"),
	"problem":  parsePage("problem"),
}

func parsePage(name string) *template.Template {
	return template.Must(template.New("layout").Funcs(pageFuncs).ParseFS(pageFiles, "page/layout.html", "page/parts.html", "page/"+name+".html"))
}

// frame is what every page has around its content.
type frame struct {
	Title, Query, Footer string
	Nav                  []navLink
	// Live: the script renews the page's parts; Self is its address.
	Live bool
	Self string
}

type navLink struct {
	Name, Href string
	Here       bool
}

func (s *Server) frame(r *http.Request, title string, live bool) frame {
	snap := s.o.Index.Snapshot()
	f := frame{
		Title: title, Live: live, Self: r.URL.RequestURI(),
		Footer: fmt.Sprintf("holdfast %s, revision %d, source %s, %s", s.o.Version, snap.Revision(), snap.Source(), clock(s.now())),
	}
	for _, l := range []navLink{{Name: "Overview", Href: "/"}, {Name: "Hosts", Href: "/view/hosts"}, {Name: "Envoys", Href: "/view/envoys"}, {Name: "Problems", Href: "/view/problems"}, {Name: "Changes", Href: "/view/changes"}} {
		l.Here = r.URL.Path == l.Href
		f.Nav = append(f.Nav, l)
	}
	return f
}

func (s *Server) pages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.overviewPage)
	mux.HandleFunc("GET /view/hosts", s.hostsPage)
	mux.HandleFunc("GET /view/envoys", s.envoysPage)
	mux.HandleFunc("GET /view/problems", s.problemsPage)
	mux.HandleFunc("GET /view/changes", s.changesPage)
	mux.HandleFunc("GET /view/search", s.searchPage)
	mux.HandleFunc("GET /view/explain", s.explainPage)
	mux.HandleFunc("GET /view/trace", s.tracePage)
	for name, kind := range map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml"} {
		mux.HandleFunc("GET /static/"+name, static(name, kind))
	}
}

func static(name, kind string) http.HandlerFunc {
	body, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		panic("admin: " + err.Error()) // not embedded
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body) // whoever asked is gone
	}
}

// render writes a page, whole or not at all.
func (s *Server) render(w http.ResponseWriter, status int, name string, view any) {
	var b bytes.Buffer
	if err := templates[name].Execute(&b, view); err != nil {
		s.o.Logger.Error("a page of the admin listener is broken", "page", name, "error", err)
		http.Error(w, "this page is broken, which is a fault of holdfast's; holdfast status shows the same", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // whoever asked is gone
}

// problemPage says what is wrong with a request, and what to do.
func (s *Server) problemPage(w http.ResponseWriter, r *http.Request, err error) {
	view := struct {
		frame
		Heading, Text string
		Hits          []string
	}{frame: s.frame(r, "Not found", false), Heading: "Not found", Text: err.Error()}
	view.Query = r.URL.Query().Get("q")
	var unknown *NotFound
	if errors.As(err, &unknown) {
		view.Hits, view.Text = unknown.Near, fmt.Sprintf("%q is not known here", unknown.Query)
		if unknown.Doubt != "" {
			view.Text += " (" + unknown.Doubt + ")"
		}
		view.Text += "."
		if len(unknown.Near) == 0 {
			view.Text += " Ask for a host (vhost/shop.example), a resource (cluster/shop/cart/80) or an object (HTTPProxy/shop/cart)."
		}
	}
	s.render(w, http.StatusNotFound, "problem", view)
}

func explainLink(about string) string { return "/view/explain?q=" + url.QueryEscape(about) }

// aboutName turns an object as traces name it, "Service shop/cart", into what
// explain takes.
func aboutName(name string) string { return strings.Replace(name, " ", "/", 1) }
