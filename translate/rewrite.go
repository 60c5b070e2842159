package translate

import (
	"strings"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
)

// prefixRewrite picks what replaces the matched prefix: the replacement named for
// exactly this prefix, or else the one for no prefix in particular.
func prefixRewrite(m *match, list []contourv1.ReplacePrefix) (string, *fault) {
	const field = "pathRewritePolicy.replacePrefix"
	if len(list) == 0 {
		return "", nil
	}
	if m.kind != pathPrefix {
		return "", faultf(field, prefixReplaceError, "MustHavePrefix", "cannot specify prefix replacements without a prefix condition")
	}
	seen := map[string]bool{}
	for _, r := range list {
		switch {
		case seen[r.Prefix] && r.Prefix != "":
			return "", faultf(field, prefixReplaceError, "DuplicateReplacement", "duplicate replacement prefix '%s'", r.Prefix)
		case seen[r.Prefix]:
			return "", faultf(field, prefixReplaceError, "AmbiguousReplacement", "ambiguous prefix replacement")
		}
		seen[r.Prefix] = true
	}
	general := ""
	for _, r := range list {
		switch r.Prefix {
		case m.path:
			return r.Replacement, nil
		case "":
			general = r.Replacement
		}
	}
	return general, nil
}

// expandRewrites splits a prefix route that rewrites in two, for /foo and /foo/.
// Envoy replaces the prefix as a string, so that with /foo → / the path /foo/x
// would become //x, and with /foo/ → /bar it would become /barx. With the two
// forms both prefix and replacement end in a slash, or neither does. Where the
// user wrote both forms there is nothing to add.
func expandRewrites(rules []rule) []rule {
	forms := map[string]int{}
	for i := range rules {
		if rules[i].match.kind == pathPrefix {
			forms[bare(rules[i].match).key()]++
		}
	}
	out := make([]rule, 0, len(rules))
	for _, u := range rules {
		if u.match.kind != pathPrefix || u.rewrite == "" || u.match.path == "/" || forms[bare(u.match).key()] > 1 {
			out = append(out, u)
			continue
		}
		u.route.Match = nil // each form has its own
		without, with := u, u.twin()
		without.match.path = strings.TrimRight(u.match.path, "/")
		without.rewrite = strings.TrimRight(u.rewrite, "/")
		with.match.path = without.match.path + "/"
		with.rewrite = without.rewrite + "/"
		if without.rewrite == "" {
			without.rewrite = "/"
		}
		out = append(out, without, with)
	}
	return out
}

// bare is the match without the slash at the end of its prefix.
func bare(m match) *match {
	if m.path != "/" {
		m.path = strings.TrimRight(m.path, "/")
	}
	return &m
}
