package translate

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/holdfast-xds/holdfast/index"
)

// rule is one route of a host, before it has a place.
type rule struct {
	name  string
	match match
	// route is complete but for its name and match.
	route *routev3.Route
	// rewrite replaces the matched prefix; "" leaves the path alone.
	rewrite  string
	upstream []upstream

	// On the plain listener: present there, and only as a redirect to HTTPS.
	plain, upgrade bool
	// On the TLS listener.
	secure bool
}

// metadata tells access logs which object a route came from.
func metadata(k index.ObjectKey) *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"envoy.access_loggers.file": {Fields: map[string]*structpb.Value{
			"io.projectcontour.kind":      structpb.NewStringValue(string(k.Kind)),
			"io.projectcontour.namespace": structpb.NewStringValue(k.Namespace),
			"io.projectcontour.name":      structpb.NewStringValue(k.Name),
		}},
	}}
}

// finish gives the route its name, match and rewrite.
func (u *rule) finish() {
	u.route.Name = u.name
	if u.route.Match == nil {
		u.route.Match = u.match.envoy()
	}
	if a := u.route.GetRoute(); a != nil {
		a.PrefixRewrite = u.rewrite
	}
}

// onPlain gives the route for the plain listener.
func (u *rule) onPlain() *routev3.Route {
	if !u.upgrade {
		return u.route
	}
	return &routev3.Route{Name: u.name, Match: u.route.Match, Metadata: u.route.Metadata, Action: toHTTPS}
}

// arrange puts the rules in the order in which Envoy must try them. Of rules with
// the same match the last one stays.
func arrange(rules []rule) []rule {
	last := make(map[string]int, len(rules))
	for i := range rules {
		last[rules[i].match.key()] = i
	}
	kept := rules[:0:0]
	for i := range rules {
		if last[rules[i].match.key()] == i {
			kept = append(kept, rules[i])
		}
	}
	slices.SortStableFunc(kept, func(a, b rule) int { return compareMatches(&a.match, &b.match) })
	return kept
}

// twin copies a rule, so that the copy's route can be changed.
func (u *rule) twin() rule {
	t := *u
	t.route = proto.CloneOf(u.route)
	return t
}
