package translate

import (
	"cmp"
	"slices"
	"strings"

	corexds "github.com/cncf/xds/go/xds/core/v3"
	matcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The on-demand listener picks filter chains by a matcher, for the sake of what it
// keeps out: the filter chain takes whatever the client wrote for a server name to
// holdfast, and one that is not UTF-8 ends the stream, each time anew. Envoy has the
// name in lower case here. What matches nothing is closed.
//
//	exactly a host with its own chain       that chain
//	exactly a host below a wildcard host    the on-demand chain
//	any other name below a wildcard host    the wildcard host's chain, the longest first
//	any other name                          the on-demand chain

// serverNames are those that a host can have.
const serverNames = `[a-z0-9_-]+(\.[a-z0-9_-]+)*`

// chainMatcher picks the chains of the hosts with their own, which have the hosts'
// names.
func chainMatcher(own, covered []string) *matcherv3.Matcher {
	exact := make(map[string]*matcherv3.Matcher_OnMatch, len(own)+len(covered))
	var list []*matcherv3.Matcher_MatcherList_FieldMatcher
	slices.SortFunc(own, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	for _, fqdn := range own {
		if suffix, wildcard := strings.CutPrefix(fqdn, anyHost); wildcard {
			list = append(list, named(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: suffix}}, toChain(fqdn)))
			continue
		}
		exact[fqdn] = toChain(fqdn)
	}
	onDemand := toChain(onDemandName)
	for _, fqdn := range covered {
		exact[fqdn] = onDemand
	}
	list = append(list, named(&matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{
		EngineType: &matcherv3.RegexMatcher_GoogleRe2{GoogleRe2: &matcherv3.RegexMatcher_GoogleRE2{}}, Regex: serverNames,
	}}}, onDemand))
	rest := &matcherv3.Matcher{MatcherType: &matcherv3.Matcher_MatcherList_{MatcherList: &matcherv3.Matcher_MatcherList{Matchers: list}}}
	if len(exact) == 0 {
		return rest
	}
	return &matcherv3.Matcher{
		MatcherType: &matcherv3.Matcher_MatcherTree_{MatcherTree: &matcherv3.Matcher_MatcherTree{
			Input:    serverNameInput,
			TreeType: &matcherv3.Matcher_MatcherTree_ExactMatchMap{ExactMatchMap: &matcherv3.Matcher_MatcherTree_MatchMap{Map: exact}},
		}},
		OnNoMatch: &matcherv3.Matcher_OnMatch{OnMatch: &matcherv3.Matcher_OnMatch_Matcher{Matcher: rest}},
	}
}

var serverNameInput = xdsExtension("server-name", &networkv3.ServerNameInput{})

func named(m *matcherv3.StringMatcher, chain *matcherv3.Matcher_OnMatch) *matcherv3.Matcher_MatcherList_FieldMatcher {
	return &matcherv3.Matcher_MatcherList_FieldMatcher{
		Predicate: &matcherv3.Matcher_MatcherList_Predicate{MatchType: &matcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{
			SinglePredicate: &matcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
				Input:   serverNameInput,
				Matcher: &matcherv3.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: m},
			},
		}},
		OnMatch: chain,
	}
}

func toChain(name string) *matcherv3.Matcher_OnMatch {
	return &matcherv3.Matcher_OnMatch{OnMatch: &matcherv3.Matcher_OnMatch_Action{Action: xdsExtension("chain", wrapperspb.String(name))}}
}

func xdsExtension(name string, config proto.Message) *corexds.TypedExtensionConfig {
	return &corexds.TypedExtensionConfig{Name: name, TypedConfig: packed(config)}
}
