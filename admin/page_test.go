package admin_test

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// allPages are the addresses of every page, for a world with that host.
func allPages(host, trace string) []string {
	return []string{
		"/", "/view/hosts", "/view/hosts?q=site", "/view/hosts?page=2", "/view/envoys", "/view/problems", "/view/changes",
		"/view/search?q=", "/view/search?q=site", "/view/explain?q=" + url.QueryEscape("vhost/"+host), "/view/explain?q=listener/ingress_https",
		"/view/explain?q=nothing", "/view/trace?id=" + trace, "/view/trace?id=nothing",
	}
}

func shopWithChanges(t *testing.T) (w *live, trace string) {
	t.Helper()
	w = newLive(t, nil)
	w.load(150)
	w.connect(t, "edge-1", "edge-2")
	w.change(edited(&w.hosts[7]))
	bad := named[*contourv1.HTTPProxy](&w.hosts[8]).DeepCopy()
	bad.Spec.Routes = []contourv1.Route{{Services: []contourv1.Service{{Name: "<script>alert(1)</script>", Port: 80}}}}
	w.change(bad)
	w.settle(t, 2)
	eventually(t, func() error {
		if len(w.ring.Traces(1)) == 0 {
			return fmt.Errorf("no trace")
		}
		return nil
	})
	return w, w.ring.Traces(1)[0].ID
}

// No page needs what the policy forbids, and what objects are called is never HTML.
func TestPagesObeyThePolicy(t *testing.T) {
	w, trace := shopWithChanges(t)
	forbidden := regexp.MustCompile(`(?i)<script(?: [^>]*)?>[^<]|<script>|<style|\sstyle=|\son[a-z]+=|javascript:|(?:src|href)="(?:https?:)?//|ZgotmplZ|<no value>`)
	for _, path := range allPages(w.hosts[8].FQDN, trace) {
		status, body := w.get(path)
		if status >= 500 || (strings.Contains(path, "nothing") != (status == 404)) {
			t.Errorf("%s: %d", path, status)
		}
		if m := forbidden.FindString(body); m != "" {
			t.Errorf("%s has %q", path, m)
		}
		for _, want := range []string{`<html lang="en">`, "<title>", `<main id="main"`, "<h1", `role="search"`, "</html>"} {
			if !strings.Contains(body, want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
	}
}

// Lists are cut into pages, whatever their length.
func TestPagesAreBounded(t *testing.T) {
	w, trace := shopWithChanges(t)
	for _, path := range allPages(w.hosts[8].FQDN, trace) {
		_, body := w.get(path)
		if rows := strings.Count(body, "<tr>"); rows > 220 || len(body) > 200<<10 {
			t.Errorf("%s has %d rows and %d bytes", path, rows, len(body))
		}
	}
	_, one := w.get("/view/hosts")
	_, two := w.get("/view/hosts?page=2")
	if !strings.Contains(one, "1–100 of 150") || !strings.Contains(two, "101–150 of 150") || !strings.Contains(one, `href="/view/hosts?page=2"`) {
		t.Errorf("the pages of hosts:\n%s", two)
	}
	if _, beyond := w.get("/view/hosts?page=99"); !strings.Contains(beyond, "101–150 of 150") {
		t.Error("a page beyond the last is not the last")
	}
}

// A host of which a part is not served is told apart in the list of hosts.
func TestHostsShowWhatIsNotServed(t *testing.T) {
	w, _ := shopWithChanges(t)
	_, body := w.get("/view/hosts?q=" + w.hosts[8].FQDN)
	if !strings.Contains(body, "in part") || strings.Contains(body, w.hosts[7].FQDN) {
		t.Error(body)
	}
}

func TestSearchLeadsToTheThing(t *testing.T) {
	w, _ := shopWithChanges(t)
	rec := w.redirect("/view/search?q=" + w.hosts[3].FQDN)
	if rec != "/view/explain?q="+w.hosts[3].FQDN {
		t.Errorf("leads to %q", rec)
	}
	if _, body := w.get("/view/search?q=site-0003"); !strings.Contains(body, "vhost/site-00030.team-000.example") && !strings.Contains(body, "site-00030.team-000.example") {
		t.Error(body)
	}
}

// The graph leads from the HTTPProxy to the endpoints.
func TestGraph(t *testing.T) {
	w, _ := shopWithChanges(t)
	h := w.host(true)
	_, body := w.get("/view/explain?q=" + url.QueryEscape("vhost/"+h.FQDN))
	_, svg, ok := strings.Cut(body, `<svg class="graph"`)
	if !ok {
		t.Fatal("no graph")
	}
	svg, _, _ = strings.Cut(svg, "</svg>")
	for _, want := range []string{"HTTPProxy", "RouteConfiguration", "Secret", "Cluster", "ClusterLoadAssignment", "at 2 Envoys", "192.0.2."} {
		if !strings.Contains(svg, want) {
			t.Errorf("the graph lacks %q", want)
		}
	}
	if n := strings.Count(svg, `class="edge"`); n < 4 {
		t.Errorf("%d edges", n)
	}
}

// What must be seen at first sight is on top, with what to do.
func TestAttention(t *testing.T) {
	now := time.Date(2026, 1, 2, 4, 0, 0, 0, time.UTC)
	frozen := delta.StreamStatus{ID: 3, Node: "edge-3", Types: []delta.TypeStatus{{Type: clusterType, InFlight: 2, Pending: 7, InFlightSince: now.Add(-90 * time.Second)}}}
	rejecting := delta.StreamStatus{ID: 4, Node: "edge-4", Types: []delta.TypeStatus{{Type: clusterType, Quarantined: []delta.Quarantined{
		{Resource: index.ResourceKey{Type: clusterType, Name: "shop/cart/80"}, Sources: []index.ObjectKey{{Kind: "Service", Namespace: "shop", Name: "cart"}}, Message: "no such field"},
	}}}}
	w := newWorld(t)
	w.started()
	w.streams = []delta.StreamStatus{envoy(1, "edge-1", "old"), frozen, rejecting}
	var got strings.Builder
	for _, f := range w.server.Status().Attention {
		fmt.Fprintf(&got, "%s %s → %s\n", f.Severity, f.Text, f.Action)
	}
	const want = `error HTTPProxy is forbidden since 2026-01-02 03:04:05Z: httpproxies is forbidden. 1 thing waits for it. → Give holdfast's service account the verbs list and watch on httpproxies.projectcontour.io; it is noticed by itself.
error edge-3 has not answered for 90 s (since 2026-01-02 03:58:30Z). 7 changes wait behind that answer. → Is the Envoy alive? Look at its own admin page and its log. It goes on serving what it has.
error edge-4 rejects Cluster shop/cart/80, made from Service shop/cart: no such field → Change the object; until then the Envoy keeps what it had, and everything else is served.
warning 1 error of users' objects: a part of each object is not served. → See the problems, each with its object and field.
`
	if got.String() != want {
		t.Errorf("got\n%swant\n%s", got.String(), want)
	}
	_, page := w.get(t, "/")
	if strings.Index(page, "httpproxies is forbidden") > strings.Index(page, `id="kinds"`) || !strings.Contains(page, "Something needs you") {
		t.Error("the page does not say it on top")
	}
	if first := admin.Bad; w.server.Status().Attention[0].Severity != first {
		t.Error("the worst is not first")
	}
}
