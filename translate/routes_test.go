package translate_test

import (
	"fmt"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// routes gives one line for each route of a host, in Envoy's order, without the
// catch-all: match → action.
func (w *world) routes(name string) []string {
	w.t.Helper()
	r := w.resource("RouteConfiguration", name)
	if r == nil {
		return nil
	}
	m, err := translate.Decode(r)
	if err != nil {
		w.t.Fatal(err)
	}
	show(w.t, r) // validates
	var out []string
	for _, route := range m.(*routev3.RouteConfiguration).VirtualHosts[0].Routes {
		if route.Name != "not-found" {
			out = append(out, line(route))
		}
	}
	return out
}

func line(r *routev3.Route) string {
	parts := []string{path(r.Match)}
	for _, h := range r.Match.Headers {
		s := h.Name
		if h.InvertMatch {
			s = "!" + s
		}
		if t := h.GetStringMatch(); t != nil {
			s += fmt.Sprintf("~%v", strings.ReplaceAll(fmt.Sprint(t), "  ", " "))
		}
		parts = append(parts, s)
	}
	for _, q := range r.Match.QueryParameters {
		s := "?" + q.Name
		if t := q.GetStringMatch(); t != nil {
			s += fmt.Sprintf("~%v", strings.ReplaceAll(fmt.Sprint(t), "  ", " "))
		}
		parts = append(parts, s)
	}
	return strings.Join(append(parts, "→", action(r)), " ")
}

func path(m *routev3.RouteMatch) string {
	switch p := m.PathSpecifier.(type) {
	case *routev3.RouteMatch_Path:
		return "=" + p.Path
	case *routev3.RouteMatch_SafeRegex:
		return "~" + p.SafeRegex.Regex
	case *routev3.RouteMatch_PathSeparatedPrefix:
		return p.PathSeparatedPrefix + "|"
	default:
		return m.GetPrefix()
	}
}

func action(r *routev3.Route) string {
	if d := r.GetDirectResponse(); d != nil {
		return fmt.Sprint(d.Status)
	}
	if d := r.GetRedirect(); d != nil {
		if d.GetHttpsRedirect() {
			return "https"
		}
		return "redirect"
	}
	a := r.GetRoute()
	out := a.GetCluster()
	for _, c := range a.GetWeightedClusters().GetClusters() {
		out += fmt.Sprintf(" %s:%d", c.Name, c.Weight.Value)
	}
	if a.PrefixRewrite != "" {
		out += " as " + a.PrefixRewrite
	}
	return strings.TrimSpace(out)
}

// routeCase is a host's spec, the routes that come of it and the problems.
type routeCase struct {
	name, rows string
	spec       string // of the root
	more       string // objects
	want       string // lines, "-" for no RouteConfiguration
	problems   string // of the root
}

func TestRoutes(t *testing.T) {
	for _, c := range routeCases {
		t.Run(c.name, func(t *testing.T) {
			w := observed(t, translate.Options{})
			w.apply(service("a", "port: 80") + "\n---\n" + service("b", "port: 80") + "\n---\n" + c.more)
			w.apply(proxy("root", "virtualhost: {fqdn: a.example}\n"+strings.TrimSpace(c.spec)))
			check(t, "routes", w.routes("http/a.example"), c.want)
			check(t, "problems", w.problems("root"), c.problems)
		})
	}
}

func check(t *testing.T, what string, got []string, want string) {
	t.Helper()
	want = strings.TrimSpace(want)
	if g := strings.Join(got, "\n"); g != want {
		t.Errorf("%s:\n%s\nwant:\n%s", what, g, want)
	}
}

const (
	toA = "services: [{name: a, port: 80}]"
	toB = "services: [{name: b, port: 80}]"
)

var routeCases = []routeCase{
	{
		name: "paths in order", rows: "HP-06 HP-10 HP-11 HP-12",
		spec: `
routes:
- {conditions: [{prefix: /}], ` + toA + `}
- {conditions: [{prefix: /blog/admin}], ` + toA + `}
- {conditions: [{prefix: /blog}], ` + toB + `}
- {conditions: [{regex: /b.*}], ` + toA + `}
- {conditions: [{regex: "/blog/[0-9]+"}], ` + toB + `}
- {conditions: [{exact: /b}], ` + toB + `}`,
		want: `
=/b → ns/b/80
~^/blog/[0-9]+ → ns/b/80
~^/b.* → ns/a/80
/blog/admin → ns/a/80
/blog → ns/b/80
/ → ns/a/80`,
	},
	{
		name: "conditions in order", rows: "HP-06 HP-13 HP-14",
		spec: `
routes:
- {conditions: [{prefix: /api}], ` + toA + `}
- {conditions: [{prefix: /api}, {queryParameter: {name: q, present: true}}, {queryParameter: {name: r, prefix: x, ignoreCase: true}}], ` + toB + `}
- {conditions: [{prefix: /api}, {header: {name: X-T, present: true}}], ` + toA + `}
- {conditions: [{prefix: /api}, {header: {name: X-T, notexact: v, treatMissingAsEmpty: true}}], ` + toB + `}
- {conditions: [{prefix: /api}, {header: {name: ":method", exact: POST}}], ` + toB + `}`,
		want: `
/api :method~exact:"POST" → ns/b/80
/api !x-t~exact:"v" → ns/b/80
/api x-t → ns/a/80
/api ?q ?r~prefix:"x" ignore_case:true → ns/b/80
/api → ns/a/80`,
	},
	{
		name: "an exact path stays exact with a header", rows: "HP-11",
		spec: `
routes:
- {conditions: [{exact: /x}, {header: {name: h, present: true}}], ` + toA + `}`,
		want: `=/x h → ns/a/80`,
	},
	{
		name: "the last of equal routes wins", rows: "HP-06",
		spec: `
routes:
- {conditions: [{prefix: /x}], ` + toA + `}
- {conditions: [{prefix: /x}], ` + toB + `}`,
		want: `/x → ns/b/80`,
	},
	{
		name: "an invalid regular expression", rows: "HP-12 HP-81",
		spec: `
routes:
- {conditions: [{prefix: /}], ` + toA + `}
- {conditions: [{regex: "/["}], ` + toB + `}`,
		want:     ``,
		problems: "error spec.routes[1].conditions RouteError/PathMatchConditionsNotValid: route: supplied regex: /[ invalid. error: error parsing regexp: missing closing ]: `[`",
	},
	{
		name: "contradicting conditions", rows: "HP-13",
		spec: `
routes:
- {conditions: [{header: {name: h, present: true}}, {header: {name: H, notpresent: true}}], ` + toA + `}`,
		problems: "error spec.routes[0].conditions RouteError/HeaderMatchConditionsNotValid: cannot specify contradictory 'present' and 'notpresent' conditions for the same route and header",
	},
	{
		name: "two query forms", rows: "HP-14",
		spec: `
routes:
- {conditions: [{queryParameter: {name: q, exact: a, prefix: b}}], ` + toA + `}`,
		problems: "error spec.routes[0].conditions RouteError/QueryParameterMatchConditionsNotValid: cannot specify more than one condition in the same match condition branch",
	},
	{
		name: "includes", rows: "HP-04 HP-05",
		spec: `
includes:
- {name: child, conditions: [{prefix: /static/}, {header: {name: h, exact: v}}]}
- {name: child2}
routes:
- {` + toA + `}`,
		more: proxy("child", `
routes:
- {conditions: [{exact: /main.js}], `+toB+`}
- {conditions: [{regex: "/.*/app[0-9].js"}], `+toB+`}
- {conditions: [{header: {name: i, present: true}}], `+toB+`}`) + proxy("child2", `
includes: [{name: grandchild, conditions: [{prefix: /deep}]}]`) + proxy("grandchild", `
routes: [{conditions: [{prefix: /er}], `+toB+`}]`),
		want: `
=/static/main.js h~exact:"v" → ns/b/80
~^/static(?:/.*/app[0-9].js) h~exact:"v" → ns/b/80
/static/ h~exact:"v" i → ns/b/80
/deep/er → ns/b/80
/ → ns/a/80`,
	},
	{
		name: "a missing include", rows: "HP-04",
		spec: `
includes:
- {name: gone, conditions: [{prefix: /gone}]}
- {name: none}
routes: [{` + toA + `}]`,
		want: `
/gone → 502
/ → ns/a/80`,
		problems: `
error spec.includes[0] IncludeError/IncludeNotFound: include ns/gone not found
error spec.includes[1] IncludeError/IncludeNotFound: include ns/none not found`,
	},
	{
		name: "a root includes a root", rows: "HP-04",
		spec:     "includes: [{name: other, conditions: [{prefix: /o}]}]",
		more:     root("other", "o.example"),
		want:     `/o → 502`,
		problems: `error spec.includes[0] IncludeError/RootIncludesRoot: root httpproxy cannot include another root httpproxy (ns/other)`,
	},
	{
		name: "duplicate include conditions", rows: "HP-05",
		spec: `
includes:
- {name: child, conditions: [{prefix: /a}]}
- {name: child2, conditions: [{prefix: /a}]}`,
		more:     proxy("child", "routes: [{"+toA+"}]") + proxy("child2", "routes: [{"+toB+"}]"),
		want:     `/a → ns/a/80`,
		problems: `error spec.includes[1].conditions IncludeError/DuplicateMatchConditions: duplicate conditions defined on an include`,
	},
	{
		name: "exact in an include", rows: "HP-05",
		spec:     "includes: [{name: child, conditions: [{exact: /a}]}]",
		more:     proxy("child", "routes: [{"+toA+"}]"),
		problems: `error spec.includes[0].conditions IncludeError/PathMatchConditionsNotValid: include: exact conditions are not allowed in includes block`,
	},
	{
		name: "services", rows: "HP-40 HP-70 HP-73",
		spec: `
routes:
- {conditions: [{prefix: /w}], services: [{name: a, port: 80, weight: 10}, {name: b, port: 80, weight: 90}]}
- {conditions: [{prefix: /even}], services: [{name: a, port: 80}, {name: b, port: 80}]}
- {conditions: [{prefix: /gone}], services: [{name: none, port: 80}]}
- {conditions: [{prefix: /port}], services: [{name: a, port: 81}]}
- {conditions: [{prefix: /half}], services: [{name: a, port: 80}, {name: none, port: 80}]}
- {conditions: [{prefix: /mirror}], services: [{name: a, port: 80, mirror: true}]}`,
		want: `
/mirror → 503
/port → 503
/half → ns/a/80
/gone → 503
/even → ns/a/80:1 ns/b/80:1
/w → ns/a/80:10 ns/b/80:90`,
		problems: `
error spec.routes[2].services[0] ServiceError/ServiceUnresolvedReference: Spec.Routes unresolved service reference: service "ns/none" not found
error spec.routes[3].services[0] ServiceError/ServiceUnresolvedReference: Spec.Routes unresolved service reference: port "81" on service "ns/a" not matched
error spec.routes[4].services[1] ServiceError/ServiceUnresolvedReference: Spec.Routes unresolved service reference: service "ns/none" not found`,
	},
	{
		name: "two mirrors", rows: "HP-74",
		spec:     "routes: [{services: [{name: a, port: 80}, {name: b, port: 80, mirror: true}, {name: a, port: 80, mirror: true}]}]",
		problems: `error spec.routes[0].services ServiceError/OnlyOneMirror: only one service per route may be nominated as mirror`,
	},
	{
		name: "exactly one action", rows: "HP-43",
		spec:     "routes: [{" + toA + ", directResponsePolicy: {statusCode: 200}}]",
		problems: `error spec.routes[0] RouteError/RouteActionCountNotValid: must set exactly one of route.services or route.requestRedirectPolicy or route.directResponsePolicy`,
	},
	{
		name: "prefix replacement", rows: "HP-53",
		spec: `
routes:
- {conditions: [{prefix: /}], ` + toA + `, pathRewritePolicy: {replacePrefix: [{replacement: /r}]}}
- {conditions: [{prefix: /foo}], ` + toA + `, pathRewritePolicy: {replacePrefix: [{replacement: /}]}}
- {conditions: [{prefix: /bar/}], ` + toA + `, pathRewritePolicy: {replacePrefix: [{prefix: /x, replacement: /x}, {prefix: /bar/, replacement: /b}]}}
- {conditions: [{prefix: /two}], ` + toA + `, pathRewritePolicy: {replacePrefix: [{replacement: /1}]}}
- {conditions: [{prefix: /two/}], ` + toA + `, pathRewritePolicy: {replacePrefix: [{replacement: /2/}]}}
- {conditions: [{prefix: /other}], ` + toA + `, pathRewritePolicy: {replacePrefix: [{prefix: /x, replacement: /x}]}}`,
		want: `
/other → ns/a/80
/two/ → ns/a/80 as /2/
/foo/ → ns/a/80 as /
/bar/ → ns/a/80 as /b/
/two → ns/a/80 as /1
/foo → ns/a/80 as /
/bar → ns/a/80 as /b
/ → ns/a/80 as /r`,
	},
	{
		name: "prefix replacement below an include", rows: "HP-53",
		spec: "includes: [{name: child, conditions: [{prefix: /app}]}]",
		more: proxy("child", "routes: [{conditions: [{prefix: /v1}], "+toA+", pathRewritePolicy: {replacePrefix: [{prefix: /app/v1, replacement: /api}, {replacement: /no}]}}]"),
		want: `
/app/v1/ → ns/a/80 as /api/
/app/v1 → ns/a/80 as /api`,
	},
	{
		name: "prefix replacement without a prefix", rows: "HP-53",
		spec:     "routes: [{conditions: [{exact: /x}], " + toA + ", pathRewritePolicy: {replacePrefix: [{replacement: /}]}}]",
		problems: `error spec.routes[0].pathRewritePolicy.replacePrefix PrefixReplaceError/MustHavePrefix: cannot specify prefix replacements without a prefix condition`,
	},
	{
		name: "duplicate replacement", rows: "HP-53",
		spec:     "routes: [{conditions: [{prefix: /x}], " + toA + ", pathRewritePolicy: {replacePrefix: [{prefix: /x, replacement: /}, {prefix: /x, replacement: /y}]}}]",
		problems: `error spec.routes[0].pathRewritePolicy.replacePrefix PrefixReplaceError/DuplicateReplacement: duplicate replacement prefix '/x'`,
	},
	{
		name: "redirects and direct responses", rows: "HP-41 HP-42",
		spec: `
routes:
- {conditions: [{prefix: /r}], requestRedirectPolicy: {hostname: b.example, statusCode: 301}}
- {conditions: [{prefix: /d}], directResponsePolicy: {statusCode: 204}}`,
		want: `
/r → redirect
/d → 204`,
	},
	{
		name: "redirect to both path and prefix", rows: "HP-41",
		spec:     "routes: [{requestRedirectPolicy: {path: /a, prefix: /b}}]",
		problems: `error spec.routes[0].requestRedirectPolicy RouteError/RequestRedirectPolicy: route.requestRedirectPolicy is invalid: cannot specify both redirect path and redirect prefix`,
	},
	{
		name: "bad timeout", rows: "HP-48",
		spec:     "routes: [{" + toA + ", timeoutPolicy: {response: soon}}]",
		problems: `error spec.routes[0].timeoutPolicy RouteError/TimeoutPolicyNotValid: route.timeoutPolicy failed to parse: error parsing response timeout: unable to parse timeout string "soon": time: invalid duration "soon"`,
	},
	{
		name: "bad headers", rows: "HP-54",
		spec:     "routes: [{" + toA + ", requestHeadersPolicy: {set: [{name: x, value: a}, {name: X, value: b}]}}]",
		problems: `error spec.routes[0].requestHeadersPolicy RouteError/RequestHeadersPolicyInvalid: duplicate header addition: "X" on request headers`,
	},
	{
		name: "Host in a response", rows: "HP-55",
		spec:     "routes: [{" + toA + ", responseHeadersPolicy: {set: [{name: host, value: a}]}}]",
		problems: `error spec.routes[0].responseHeadersPolicy RouteError/ResponseHeaderPolicyInvalid: rewriting "Host" header is not supported on response headers`,
	},
	{
		name: "Envoy never sees what it would reject", rows: "HF-06",
		spec:     "routes: [{" + toA + ", requestHeadersPolicy: {remove: [Host]}}]",
		problems: `error spec.routes[0].requestHeadersPolicy RouteError/RequestHeadersPolicyInvalid: invalid remove header "Host": it can't be removed on request headers`,
	},
	{
		name: "protection that is not implemented", rows: "HP-59",
		spec: `
routes:
- {` + toA + `}
- {conditions: [{prefix: /admin}], ` + toA + `, ipAllowPolicy: [{source: Peer, cidr: 10.0.0.0/8}]}`,
		want: `
/admin → 503
/ → ns/a/80`,
		problems: `error spec.routes[1].ipAllowPolicy IPFilterError/NotSupported: spec.routes[1].ipAllowPolicy is not supported yet`,
	},
	{
		name: "upstream validation that is not implemented", rows: "HP-75",
		spec: `
routes:
- {services: [{name: a, port: 80, protocol: tls, validation: {caSecret: ca, subjectName: s}}]}`,
		want:     `/ → 503`,
		problems: `error spec.routes[0].services[0].validation ServiceError/NotSupported: spec.routes[0].services[0].validation is not supported yet`,
	},
	{
		name: "an addition that is not implemented", rows: "HP-50",
		spec:     "routes: [{" + toA + ", healthCheckPolicy: {path: /h}}]",
		want:     `/ → ns/a/80`,
		problems: `warning spec.routes[0].healthCheckPolicy RouteError/NotSupported: spec.routes[0].healthCheckPolicy is not supported yet`,
	},
	{
		name: "nothing defined", rows: "HP-02",
		spec: "", want: "",
		problems: `error spec SpecError/NothingDefined: HTTPProxy.Spec must have at least one Route, Include, or a TCPProxy`,
	},
}

// HP-04: each HTTPProxy of the cycle is told the way.
func TestIncludeCycle(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(proxy("root", "virtualhost: {fqdn: a.example}\nincludes: [{name: x}]") +
		proxy("x", "includes: [{name: z}]") + proxy("z", "includes: [{name: x}]"))
	check(t, "problems", w.problems("x"), "error spec.includes IncludeError/IncludeCreatesCycle: include creates an include cycle: ns/root -> ns/x -> ns/z -> ns/x")
	if w.routes("http/a.example") != nil {
		t.Error("a host without routes is served")
	}
}

// HP-04: an edit of a child shows under all roots; its removal gives a 502 where
// there are conditions, and nothing where there are none.
func TestChildOfTwoRoots(t *testing.T) {
	w := observed(t, translate.Options{})
	w.apply(service("a", "port: 80") + "\n---\n" + proxy("r1", "virtualhost: {fqdn: one.example}\nincludes: [{name: child, conditions: [{prefix: /x}]}]") +
		proxy("r2", "virtualhost: {fqdn: two.example}\nincludes: [{name: child}]") + proxy("child", "routes: [{"+toA+"}]"))
	check(t, "one", w.routes("http/one.example"), "/x → ns/a/80")
	check(t, "two", w.routes("http/two.example"), "/ → ns/a/80")
	w.remove(kinds.HTTPProxy, "ns", "child")
	check(t, "one", w.routes("http/one.example"), "/x → 502")
	if w.resource("RouteConfiguration", "http/two.example") != nil {
		t.Error("two.example has no route left, and is still there")
	}
	if w.resource("Cluster", "ns/a/80") != nil {
		t.Error("the cluster outlives its last route")
	}
}

// HP-02: a child that no root reaches is orphaned; until its kind is complete
// nobody can say so.
func TestOrphans(t *testing.T) {
	w := newWorld(t, translate.Options{})
	w.see(proxy("child", "routes: [{"+toA+"}]") + proxy("parent", "includes: [{name: child}]"))
	if p := w.problems("child"); p != nil {
		t.Fatalf("said too early: %v", p)
	}
	w.observe(kinds.HTTPProxy)
	const want = "warning  Orphaned/Orphaned: this HTTPProxy is not part of a delegation chain from a root HTTPProxy"
	check(t, "child", w.problems("child"), want)
	check(t, "parent", w.problems("parent"), want)
	w.apply(proxy("root", "virtualhost: {fqdn: a.example}\nincludes: [{name: parent}]"))
	check(t, "child", w.problems("child"), "")
	w.remove(kinds.HTTPProxy, "ns", "root")
	check(t, "child", w.problems("child"), want)
}
