package translate

import (
	"regexp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// envoy gives the match as Envoy wants it.
func (m *match) envoy() *routev3.RouteMatch {
	out := &routev3.RouteMatch{}
	switch m.kind {
	case pathExact:
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: m.path}
	case pathRegex:
		// Envoy compares the whole path anyway. The anchor keeps RE2's program small.
		out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "^" + m.path}}
	case pathSegments:
		out.PathSpecifier = &routev3.RouteMatch_PathSeparatedPrefix{PathSeparatedPrefix: m.path}
	default:
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: m.path}
	}
	for i := range m.headers {
		out.Headers = append(out.Headers, m.headers[i].header())
	}
	for i := range m.queries {
		out.QueryParameters = append(out.QueryParameters, m.queries[i].query())
	}
	return out
}

func (c *condition) header() *routev3.HeaderMatcher {
	h := &routev3.HeaderMatcher{Name: c.name, InvertMatch: c.invert, TreatMissingHeaderAsEmpty: c.missingIsEmpty}
	if c.how == valuePresent {
		h.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
	} else {
		h.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: c.text()}
	}
	return h
}

func (c *condition) query() *routev3.QueryParameterMatcher {
	q := &routev3.QueryParameterMatcher{Name: c.name}
	if c.how == valuePresent {
		q.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true}
	} else {
		q.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_StringMatch{StringMatch: c.text()}
	}
	return q
}

func (c *condition) text() *matcherv3.StringMatcher {
	s := &matcherv3.StringMatcher{IgnoreCase: c.ignoreCase}
	switch c.how {
	case valueExact:
		s.MatchPattern = &matcherv3.StringMatcher_Exact{Exact: c.value}
	case valuePrefix:
		s.MatchPattern = &matcherv3.StringMatcher_Prefix{Prefix: c.value}
	case valueSuffix:
		s.MatchPattern = &matcherv3.StringMatcher_Suffix{Suffix: c.value}
	case valueContains:
		s.MatchPattern = &matcherv3.StringMatcher_Contains{Contains: c.value}
	default:
		s.MatchPattern = &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: c.value}}
	}
	return s
}

// oneLabel is the condition that a wildcard host adds to each of its routes:
// Envoy's wildcard domains match any number of labels, Kubernetes' exactly one.
func oneLabel(fqdn string) condition {
	return condition{
		name:  ":authority",
		how:   valueRegex,
		value: `(?i)[a-z0-9]([-a-z0-9]*[a-z0-9])?` + regexp.QuoteMeta(fqdn[1:]) + `(:[0-9]+)?`,
	}
}
