package translate

import (
	"slices"
	"strings"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/index"
)

// tree walks from a root HTTPProxy through what it includes.
type tree struct {
	*host
	tls bool
}

// node is an HTTPProxy of the tree, with what leads to it.
type node struct {
	object  *index.Object
	proxy   *contourv1.HTTPProxy
	conds   []contourv1.MatchCondition // of the includes above
	visited []index.ObjectKey          // from the root, without this one
}

func (n *node) key() index.ObjectKey { return n.object.ObjectKey }

func (t *tree) invalid(n *node, f *fault) { t.problem(n.key(), index.Error, f) }

// proxy gives the rules of a node and of what it includes. An HTTPProxy with an
// invalid route gives none, nor does anything below it: half of what its owner
// asked for could be something quite different.
func (t *tree) proxy(n node) []rule {
	if f := cycle(&n); f != nil {
		t.invalid(&n, f)
		return nil
	}
	t.addSource(n.key())
	out := t.includes(&n)
	for i := range n.proxy.Spec.Routes {
		u, f := t.route(&n, i)
		if f != nil {
			f.field = strings.TrimSuffix(item("spec.routes", i)+"."+f.field, ".")
			t.invalid(&n, f)
			return nil
		}
		out = append(out, u)
	}
	return expandRewrites(out)
}

func cycle(n *node) *fault {
	if !slices.Contains(n.visited, n.key()) {
		return nil
	}
	var path []string
	for _, k := range append(slices.Clone(n.visited), n.key()) {
		path = append(path, k.Namespace+"/"+k.Name)
	}
	return faultf("spec.includes", includeError, "IncludeCreatesCycle", "include creates an include cycle: %s", strings.Join(path, " -> "))
}

func (t *tree) includes(n *node) []rule {
	var out []rule
	seen := map[string]bool{}
	for i := range n.proxy.Spec.Includes {
		inc := &n.proxy.Spec.Includes[i]
		if f := includeFault(inc, seen); f != nil {
			f.field = item("spec.includes", i) + ".conditions"
			t.invalid(n, f)
			continue
		}
		out = append(out, t.include(n, i, inc)...)
	}
	return out
}

// includeFault checks an include's conditions. seen are those of the includes
// before it.
func includeFault(inc *contourv1.Include, seen map[string]bool) *fault {
	if err := checkIncludePaths(inc.Conditions); err != nil {
		return faultf("", includeError, "PathMatchConditionsNotValid", "include: %s", err)
	}
	if err := checkHeaders(inc.Conditions); err != nil {
		return faultf("", routeError, "HeaderMatchConditionsNotValid", "%s", err)
	}
	if err := checkQueries(inc.Conditions); err != nil {
		return faultf("", routeError, "QueryParameterMatchConditionsNotValid", "%s", err)
	}
	m, err := merge(inc.Conditions)
	if err != nil {
		return faultf("", includeError, "PathMatchConditionsNotValid", "include: %s", err)
	}
	// Several includes of everything are allowed: what they include tells them apart.
	if m.path == "/" && len(m.headers) == 0 && len(m.queries) == 0 {
		return nil
	}
	if seen[m.key()] {
		return faultf("", includeError, "DuplicateMatchConditions", "duplicate conditions defined on an include")
	}
	seen[m.key()] = true
	return nil
}

// include follows one include. Where it leads nowhere its conditions answer 502;
// without conditions there is no route.
func (t *tree) include(n *node, i int, inc *contourv1.Include) []rule {
	ns, name := includeTarget(n.proxy, *inc)
	o, p, presence := t.rules.proxyNamed(t.r, ns, name)
	field := item("spec.includes", i)
	switch {
	case presence == index.NotKnown:
		return nil // held back until the kind is complete
	case presence == index.Missing:
		t.invalid(n, faultf(field, includeError, "IncludeNotFound", "include %s/%s not found", ns, name))
		return t.badGateway(n, field, inc)
	case p.Spec.VirtualHost != nil:
		t.invalid(n, faultf(field, includeError, "RootIncludesRoot", "root httpproxy cannot include another root httpproxy (%s/%s)", ns, name))
		return t.badGateway(n, field, inc)
	}
	return t.proxy(node{
		object: o, proxy: p,
		conds:   slices.Concat(n.conds, inc.Conditions),
		visited: append(slices.Clone(n.visited), n.key()),
	})
}

func (t *tree) badGateway(n *node, field string, inc *contourv1.Include) []rule {
	if len(inc.Conditions) == 0 {
		return nil
	}
	m, err := merge(slices.Concat(n.conds, inc.Conditions))
	if err != nil {
		return nil
	}
	u := t.rule(n.key(), field, m, badGateway())
	u.plain, u.secure = true, t.tls
	return []rule{u}
}
