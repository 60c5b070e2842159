package admin_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

func (w *live) explain(t *testing.T, query string) *admin.Explanation {
	t.Helper()
	status, body := w.get("/explain?q=" + url.QueryEscape(query))
	x := &admin.Explanation{}
	if status != 200 {
		t.Fatalf("explain %s: %d %s", query, status, body)
	}
	if err := json.Unmarshal([]byte(body), x); err != nil {
		t.Fatal(err)
	}
	return x
}

// lines gives what an explanation says, in a form to compare.
func lines(x *admin.Explanation) string {
	var b strings.Builder
	for _, o := range x.Objects {
		fmt.Fprintf(&b, "object %s %s\n", o.ObjectKey, o.State)
	}
	for _, r := range x.Resources {
		fmt.Fprintf(&b, "resource %s %s", r.ResourceKey, r.State)
		for _, e := range r.Envoys {
			fmt.Fprintf(&b, " %s=%s", e.Node, e.State)
		}
		b.WriteByte('\n')
	}
	for _, f := range x.Findings {
		fmt.Fprintf(&b, "%s: %s\n", f.Severity, f.Text)
	}
	return b.String()
}

// HF-08
func TestExplainHost(t *testing.T) {
	w := newLive(t, nil)
	w.load(20)
	w.connect(t, "edge-1", "edge-2")
	h := w.host(true)
	const want = `object HTTPProxy team-000/site-00000 found
object Service team-000/assets found
object Service team-000/site-00000 found
object EndpointSlice team-000/assets-a found
object EndpointSlice team-000/site-00000-a found
object Secret team-000/site-00000 found
resource RouteConfiguration http/site-00000.team-000.example live edge-1=current edge-2=current
resource ScopedRouteConfiguration http/site-00000.team-000.example live edge-1=current edge-2=current
resource RouteConfiguration https/site-00000.team-000.example live edge-1=current edge-2=current
resource Cluster team-000/assets/80 live edge-1=current edge-2=current
resource ClusterLoadAssignment team-000/assets/http live edge-1=current edge-2=current
resource Cluster team-000/site-00000/80 live edge-1=current edge-2=current
resource ClusterLoadAssignment team-000/site-00000/http live edge-1=current edge-2=current
resource Secret team-000/site-00000 live edge-1=current edge-2=current
resource Listener ingress_http live edge-1=current edge-2=current
resource Listener ingress_https live edge-1=current edge-2=current
ok: Every connected Envoy that asks for them has the current version of all 10 resources.
`
	x := w.explain(t, "vhost/"+h.FQDN)
	if got := lines(x); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, o := range x.Objects {
		if o.Version == "" {
			t.Errorf("%s has no version", o.ObjectKey)
		}
	}
	for _, r := range x.Resources {
		if r.Maker == "" || r.Version == "" || len(r.Basis) == 0 {
			t.Errorf("%s: maker %q, version %q, basis %v", r.ResourceKey, r.Maker, r.Version, r.Basis)
		}
	}
	if upper := w.explain(t, "host/"+strings.ToUpper(h.FQDN)); lines(upper) != want {
		t.Errorf("in capitals:\n%s", lines(upper))
	}
	if bare := w.explain(t, h.FQDN); lines(bare) != want {
		t.Errorf("by its bare name:\n%s", lines(bare))
	}
}

// Each way to name a thing leads to its objects and its resources.
func TestExplainEverything(t *testing.T) {
	w := newLive(t, nil)
	w.load(20)
	w.connect(t, "edge-1")
	for query, wants := range map[string][]string{
		"HTTPProxy/team-000/site-00003":           {"object HTTPProxy team-000/site-00003 found", "resource Cluster team-000/site-00003/80 live"},
		"httpproxies/team-000/site-00003":         {"object HTTPProxy team-000/site-00003 found"},
		"service/team-000/site-00003":             {"object Service team-000/site-00003 found", "resource Cluster team-000/site-00003/80 live", "resource ClusterLoadAssignment team-000/site-00003/http"},
		"EndpointSlice/team-000/site-00003-a":     {"object EndpointSlice team-000/site-00003-a found", "resource ClusterLoadAssignment team-000/site-00003/http live edge-1=current"},
		"secret/team-000/site-00003":              {"object Secret team-000/site-00003 found", "resource Secret team-000/site-00003 live edge-1=current"},
		"sds/team-000/site-00003":                 {"resource Secret team-000/site-00003 live edge-1=current"},
		"cluster/team-000/site-00003/80":          {"object Service team-000/site-00003 found", "resource Cluster team-000/site-00003/80 live edge-1=current", "resource ClusterLoadAssignment team-000/site-00003/http", "resource RouteConfiguration http/site-00003.team-000.example"},
		delta.Cluster + "/team-000/site-00003/80": {"resource Cluster team-000/site-00003/80 live edge-1=current"},
		"endpoints/team-000/site-00003/http":      {"object EndpointSlice team-000/site-00003-a found"},
		"listener/ingress_http":                   {"resource Listener ingress_http live edge-1=current"},
		"route/http/site-00003.team-000.example":  {"resource RouteConfiguration http/site-00003.team-000.example live"},
		"scope/http/site-00003.team-000.example":  {"resource ScopedRouteConfiguration http/site-00003.team-000.example live"},
		"team-000/site-00003":                     {"object HTTPProxy team-000/site-00003 found"},
		" /vhost/site-00003.team-000.example ":    {"resource RouteConfiguration http/site-00003.team-000.example live"},
		"cluster/team-000/assets/80":              {"object Service team-000/assets found"},
		"HTTPProxy/team-000/site-00003?nothing":   nil,
		"listener/nothing":                        nil,
		"vhost/nothing.example":                   nil,
		"Service/team-000/nothing":                nil,
		"nothing at all":                          nil,
	} {
		if wants == nil {
			if status, body := w.get("/explain?q=" + url.QueryEscape(query)); status != 404 {
				t.Errorf("%s: %d %s", query, status, body)
			}
			continue
		}
		got := lines(w.explain(t, query))
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: lacks %q:\n%s", query, want, got)
			}
		}
	}
	if status, body := w.get("/explain?q="); status != 400 || !strings.Contains(body, "cluster/NAME") {
		t.Errorf("an empty question: %d %s", status, body)
	}
}

func TestExplainOffersNearNames(t *testing.T) {
	w := newLive(t, nil)
	w.load(20)
	for query, near := range map[string]string{
		"vhost/site-00007.team-000.exampel": "vhost/site-00007.team-000.example",
		"site-00007.team":                   "vhost/site-00007.team-000.example",
		"HTTPProxy/team-000/site-0007":      "HTTPProxy/team-000/site-00007",
		"cluster/team-000/site-00007":       "Service/team-000/site-00007",
	} {
		status, body := w.get("/explain?q=" + url.QueryEscape(query))
		if status != 404 || !strings.Contains(body, near) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}

// A name that is not there may be one that was merely not seen.
func TestNotFoundSaysWhatIsNotComplete(t *testing.T) {
	w := newLive(t, nil)
	w.load(5, kinds.HTTPProxy)
	if _, body := w.get("/explain?q=vhost/x.example"); !strings.Contains(body, "not complete yet: HTTPProxy") {
		t.Error(body)
	}
	if _, body := w.get("/view/explain?q=vhost/x.example"); !strings.Contains(body, "not complete yet: HTTPProxy") {
		t.Error(body)
	}
}

// An object that is not there, but is referred to, is explained: who asks for it.
func TestExplainWhatIsMissing(t *testing.T) {
	w := newLive(t, nil)
	w.load(20)
	h := w.host(false)
	p := named[*contourv1.HTTPProxy](h).DeepCopy()
	p.Spec.Routes = []contourv1.Route{{Services: []contourv1.Service{{Name: "gone", Port: 80}}}}
	w.change(p)
	x := w.explain(t, "Service/"+h.Namespace+"/gone")
	if x.Objects[0].State != "missing" && !slices.ContainsFunc(x.Objects, func(o admin.ObjectView) bool { return o.Name == "gone" && o.State == "missing" }) {
		t.Errorf("objects: %v", x.Objects)
	}
	if len(x.Derivations) != 1 || string(x.Derivations[0].ID) != "host/"+h.FQDN {
		t.Errorf("derivations: %+v", x.Derivations)
	}
	if len(x.Problems) != 1 || x.Findings[0].Severity != admin.Bad {
		t.Errorf("problems %+v, findings %+v", x.Problems, x.Findings)
	}
}

// With Secrets forbidden, the explanation of a TLS host says so.
func TestExplainNamesTheKindThatIsMissing(t *testing.T) {
	w := newLive(t, nil)
	w.load(20, kinds.Secret)
	w.index.Apply(index.Cause{}, index.KindStatus{Kind: kinds.Secret, State: index.Forbidden, Error: "secrets is forbidden", At: time.Now()})
	h := w.host(true)
	got := lines(w.explain(t, "vhost/"+h.FQDN))
	if !strings.Contains(got, "object Secret "+h.Namespace+"/"+h.Name+" unknown") || !strings.Contains(got, "It may well exist: Secret is not complete (forbidden: secrets is forbidden)") {
		t.Error(got)
	}
}

// The last changes of what a host is made of, with their traces.
func TestExplainRecentChanges(t *testing.T) {
	w := newLive(t, nil)
	w.load(20)
	w.connect(t, "edge-1")
	h, other := w.host(false), &w.hosts[19]
	w.change(edited(other))
	w.change(edited(h))
	w.settle(t, 1)
	x := w.explain(t, "vhost/"+h.FQDN)
	if len(x.Changes) == 0 {
		t.Fatal("no changes")
	}
	c := x.Changes[0]
	if c.Trace == "" || !c.Kept || c.At.IsZero() || c.Revision != w.index.Snapshot().Revision() {
		t.Errorf("%+v", c)
	}
	for _, k := range c.Resources {
		if k.Type != delta.Endpoints || !strings.Contains(k.Name, h.Name) {
			t.Errorf("a change of %s", k)
		}
	}
	eventually(t, func() error {
		_, body := w.get("/view/trace?id=" + c.Trace)
		for _, want := range []string{"EndpointSlice " + h.Namespace, "edge-1", ">ack<"} {
			if !strings.Contains(body, want) {
				return fmt.Errorf("the trace's page lacks %q", want)
			}
		}
		return nil
	})
}

// edited gives a host's slice with its endpoint not ready.
func edited(h *fixture.Host) *discoveryv1.EndpointSlice {
	s := named[*discoveryv1.EndpointSlice](h).DeepCopy()
	s.Endpoints[0].Conditions.Ready = new(false)
	return s
}
