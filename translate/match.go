package translate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// pathKind is how a path is compared, the most specific first.
type pathKind uint8

const (
	pathExact pathKind = iota
	pathRegex
	pathSegments // whole path segments, as Ingress's Prefix
	pathPrefix   // a plain string prefix
)

// valueMatch is how a header or query parameter is compared. The order is that
// of precedence.
type valueMatch uint8

const (
	valueExact valueMatch = iota
	valueRegex
	valuePrefix
	valueSuffix
	valueContains
	valuePresent
)

// condition on a header or a query parameter.
type condition struct {
	name           string
	how            valueMatch
	value          string
	ignoreCase     bool
	invert         bool // headers only
	missingIsEmpty bool // with invert only
}

// match is what a request must be like for a route.
type match struct {
	kind    pathKind
	path    string
	headers []condition // sorted
	queries []condition // sorted
}

// newMatch sorts the conditions, so that equal matches have equal keys.
func newMatch(kind pathKind, path string, headers, queries []condition) match {
	slices.SortStableFunc(headers, compareConditions)
	slices.SortStableFunc(queries, compareConditions)
	return match{kind, path, headers, queries}
}

// everything reports whether every request matches.
func (m *match) everything() bool {
	return m.kind == pathPrefix && m.path == "/" && len(m.headers) == 0 && len(m.queries) == 0
}

// key tells different matches apart. Two kinds of prefix with the same path are
// one match: they are the same thing said by HTTPProxy and by Ingress.
func (m *match) key() string {
	kind := min(m.kind, pathSegments)
	var b strings.Builder
	b.WriteByte('0' + byte(kind))
	b.WriteString(m.path)
	for _, c := range m.headers {
		c.writeTo(&b, 'h')
	}
	for _, c := range m.queries {
		c.writeTo(&b, 'q')
	}
	return b.String()
}

func (c *condition) writeTo(b *strings.Builder, what byte) {
	b.WriteByte(0)
	b.WriteByte(what)
	b.WriteByte('0' + byte(c.how))
	b.WriteString(strconv.FormatBool(c.ignoreCase))
	b.WriteString(strconv.FormatBool(c.invert))
	b.WriteString(strconv.FormatBool(c.missingIsEmpty))
	b.WriteString(c.name)
	b.WriteByte('=')
	b.WriteString(c.value)
}

// compareMatches orders routes, the first that matches wins: exact before regex
// before prefix, longer paths before shorter ones, then by conditions.
func compareMatches(a, b *match) int {
	ka, kb := min(a.kind, pathSegments), min(b.kind, pathSegments)
	if c := cmp.Compare(ka, kb); c != 0 {
		return c
	}
	if ka != pathExact {
		if c := cmp.Compare(len(b.path), len(a.path)); c != 0 {
			return c
		}
	}
	return cmp.Or(
		cmp.Compare(b.path, a.path),
		cmp.Compare(a.kind, b.kind),
		compareSpecificity(a, b),
	)
}

// compareSpecificity: a method first, then more headers, then more query
// parameters, then one by one.
func compareSpecificity(a, b *match) int {
	ha, ma := withoutMethod(a.headers)
	hb, mb := withoutMethod(b.headers)
	return cmp.Or(
		trueFirst(ma, mb),
		cmp.Compare(len(hb), len(ha)),
		cmp.Compare(len(b.queries), len(a.queries)),
		slices.CompareFunc(ha, hb, compareConditions),
		slices.CompareFunc(a.queries, b.queries, compareConditions),
	)
}

func withoutMethod(headers []condition) (rest []condition, found bool) {
	i := slices.IndexFunc(headers, func(c condition) bool { return c.name == ":method" })
	if i < 0 {
		return headers, false
	}
	rest = slices.DeleteFunc(slices.Clone(headers), func(c condition) bool { return c.name == ":method" })
	return rest, true
}

func compareConditions(a, b condition) int {
	return cmp.Or(
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.how, b.how),
		cmp.Compare(a.value, b.value),
		trueFirst(b.invert, a.invert),
		trueFirst(b.ignoreCase, a.ignoreCase),
		trueFirst(b.missingIsEmpty, a.missingIsEmpty),
	)
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
