package translate

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
)

// Conditions of an include chain are joined by AND: paths are strung together,
// headers and query parameters add up.

// merge makes the match of a chain of conditions, from the root's include down to
// the route. The parts must have been checked.
func merge(conds []contourv1.MatchCondition) (match, error) {
	kind, path, err := mergePaths(conds)
	if err != nil {
		return match{}, err
	}
	return newMatch(kind, path, headerConditions(conds), queryConditions(conds)), nil
}

// mergePaths strings the paths together. Only a route can have an exact path or
// a regular expression, so there is at most one of these, at the end.
func mergePaths(conds []contourv1.MatchCondition) (pathKind, string, error) {
	var path, regex string
	kind := pathPrefix
	for i := range conds {
		c := &conds[i]
		path += c.Prefix + c.Exact
		switch {
		case c.Exact != "":
			kind = pathExact
		case c.Regex != "":
			kind, regex = pathRegex, c.Regex
		}
	}
	path = collapseSlashes(path)
	switch {
	case kind == pathRegex:
		return mergeRegex(path, regex)
	case path == "":
		return pathPrefix, "/", nil
	default:
		return kind, path, nil
	}
}

// mergeRegex puts a prefix before a regular expression, in a group of its own so
// that an alternative can't leave the prefix.
func mergeRegex(prefix, regex string) (pathKind, string, error) {
	if prefix = strings.TrimRight(prefix, "/"); prefix != "" {
		regex = regexp.QuoteMeta(prefix) + "(?:" + regex + ")"
	}
	if checkRegex(regex) != nil {
		return 0, "", errors.New("regex invalid after merging with include prefix")
	}
	return pathRegex, regex, nil
}

func collapseSlashes(s string) string {
	for strings.Contains(s, "//") {
		s = strings.ReplaceAll(s, "//", "/")
	}
	return s
}

// checkRegex: Envoy's RE2 and Go's syntax are the same.
func checkRegex(s string) error {
	_, err := syntax.Parse(s, syntax.Perl)
	return err
}

// checkPaths checks the path conditions of one block.
func checkPaths(conds []contourv1.MatchCondition) error {
	n := 0
	for i := range conds {
		c := &conds[i]
		for _, p := range []struct{ form, value string }{{"prefix", c.Prefix}, {"exact", c.Exact}, {"regex", c.Regex}} {
			if p.value == "" {
				continue
			}
			n++
			if p.value[0] != '/' {
				return fmt.Errorf("%s conditions must start with /, %s was supplied", p.form, p.value)
			}
		}
		if c.Regex != "" {
			if err := checkRegex(c.Regex); err != nil {
				return fmt.Errorf("supplied regex: %s invalid. error: %w", c.Regex, err)
			}
		}
	}
	if n > 1 {
		return errors.New("more than one prefix, exact or regex is not allowed in a condition block")
	}
	return nil
}

// checkIncludePaths checks the path conditions of an include.
func checkIncludePaths(conds []contourv1.MatchCondition) error {
	for i := range conds {
		switch {
		case conds[i].Exact != "":
			return errors.New("exact conditions are not allowed in includes block")
		case conds[i].Regex != "":
			return errors.New("regex conditions are not allowed in includes block")
		}
	}
	return checkPaths(conds)
}

func headerConditions(conds []contourv1.MatchCondition) []condition {
	var out []condition
	for i := range conds {
		if h := conds[i].Header; h != nil {
			if c, ok := headerCondition(h); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// headerCondition reads one condition; the first form that is set counts. None
// at all is no condition.
func headerCondition(h *contourv1.HeaderMatchCondition) (condition, bool) {
	c := condition{name: strings.ToLower(h.Name)}
	switch {
	case h.Present:
		c.how = valuePresent
		return c, true
	case h.NotPresent:
		c.how, c.invert = valuePresent, true
		return c, true
	case h.Contains != "":
		c.how, c.value = valueContains, h.Contains
	case h.NotContains != "":
		c.how, c.value, c.invert = valueContains, h.NotContains, true
	case h.Exact != "":
		c.how, c.value = valueExact, h.Exact
	case h.NotExact != "":
		c.how, c.value, c.invert = valueExact, h.NotExact, true
	case h.Regex != "":
		c.how, c.value = valueRegex, h.Regex
		return c, true
	default:
		return c, false
	}
	c.ignoreCase = h.IgnoreCase
	c.missingIsEmpty = c.invert && h.TreatMissingAsEmpty
	return c, true
}

// checkHeaders looks for header conditions that are invalid, or that no request
// can meet together.
func checkHeaders(conds []contourv1.MatchCondition) error {
	var seen []condition
	for i := range conds {
		h := conds[i].Header
		if h == nil {
			continue
		}
		c, ok := headerCondition(h)
		if !ok {
			continue
		}
		if c.how == valueRegex && checkRegex(c.value) != nil {
			return errors.New("invalid regular expression specified for 'regex' condition")
		}
		for _, s := range seen {
			if err := contradiction(s, c); err != nil {
				return err
			}
		}
		seen = append(seen, c)
	}
	return nil
}

func contradiction(a, b condition) error {
	if a.name != b.name || a.how != b.how {
		return nil
	}
	switch {
	case a.how == valueExact && !a.invert && !b.invert:
		return errors.New("cannot specify duplicate header 'exact match' conditions in the same route")
	case a.invert == b.invert || a.value != b.value:
		return nil
	case a.how == valuePresent:
		return errors.New("cannot specify contradictory 'present' and 'notpresent' conditions for the same route and header")
	case a.how == valueExact:
		return errors.New("cannot specify contradictory 'exact' and 'notexact' conditions for the same route and header")
	case a.how == valueContains:
		return errors.New("cannot specify contradictory 'contains' and 'notcontains' conditions for the same route and header")
	}
	return nil
}

func queryConditions(conds []contourv1.MatchCondition) []condition {
	var out []condition
	for i := range conds {
		if q := conds[i].QueryParameter; q != nil {
			out = append(out, queryForms(q)...)
		}
	}
	return out
}

// queryForms gives every form that is set; a valid condition has exactly one.
func queryForms(q *contourv1.QueryParameterMatchCondition) []condition {
	var out []condition
	add := func(how valueMatch, value string, set, ignoreCase bool) {
		if set {
			out = append(out, condition{name: q.Name, how: how, value: value, ignoreCase: ignoreCase})
		}
	}
	add(valueExact, q.Exact, q.Exact != "", q.IgnoreCase)
	add(valuePrefix, q.Prefix, q.Prefix != "", q.IgnoreCase)
	add(valueSuffix, q.Suffix, q.Suffix != "", q.IgnoreCase)
	add(valueRegex, q.Regex, q.Regex != "", false)
	add(valueContains, q.Contains, q.Contains != "", q.IgnoreCase)
	add(valuePresent, "", q.Present, false)
	return out
}

// checkQueries checks the conditions on query parameters.
func checkQueries(conds []contourv1.MatchCondition) error {
	exact := map[string]bool{}
	for i := range conds {
		q := conds[i].QueryParameter
		if q == nil {
			continue
		}
		forms := queryForms(q)
		switch {
		case len(forms) == 0:
			return errors.New("must specify at least one query parameter condition")
		case len(forms) > 1:
			return errors.New("cannot specify more than one condition in the same match condition branch")
		case forms[0].how == valueRegex && checkRegex(q.Regex) != nil:
			return errors.New("invalid regular expression specified for 'regex' condition")
		case forms[0].how == valueExact:
			name := strings.ToLower(q.Name)
			if exact[name] {
				return errors.New("cannot specify duplicate query parameter 'exact match' conditions in the same route")
			}
			exact[name] = true
		}
	}
	return nil
}
