package translate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// target is one Service that a route sends requests to.
type target struct {
	upstream  upstream
	weight    uint32
	request   headerPolicy
	response  headerPolicy
	mirroring bool
}

// policies are what a route does to requests, whatever their target.
type policies struct {
	request, response headerPolicy
	timeout, idle     *durationpb.Duration
	retry             *routev3.RetryPolicy
	websocket         bool
	// idleConnection belongs to the clusters.
	idleConnection time.Duration
}

// Both answers to a WebSocket upgrade are said: the plain listener allows them
// in general, since it chooses its filters before a wildcard host's route is known.
var (
	websocketOn  = []*routev3.RouteAction_UpgradeConfig{{UpgradeType: "websocket"}}
	websocketOff = []*routev3.RouteAction_UpgradeConfig{{UpgradeType: "websocket", Enabled: wrapperspb.Bool(false)}}
)

// forward makes the action for targets, or a 503 when none takes requests.
func forward(p *policies, targets []target) *routev3.Route {
	out := &routev3.Route{}
	var mirror *target
	var serving []target
	for i := range targets {
		if targets[i].mirroring {
			mirror = &targets[i]
		} else {
			serving = append(serving, targets[i])
		}
	}
	if len(serving) == 0 {
		out.Action = answer(503)
		return out
	}
	a := &routev3.RouteAction{RetryPolicy: p.retry, Timeout: p.timeout, IdleTimeout: p.idle, UpgradeConfigs: websocketOff}
	if p.websocket {
		a.UpgradeConfigs = websocketOn
	}
	if mirror != nil {
		a.RequestMirrorPolicies = []*routev3.RouteAction_RequestMirrorPolicy{mirror.mirrorPolicy()}
	}
	switch {
	case p.request.host != "":
		a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteLiteral{HostRewriteLiteral: p.request.host}
	case p.request.hostHeader != "":
		a.HostRewriteSpecifier = &routev3.RouteAction_HostRewriteHeader{HostRewriteHeader: p.request.hostHeader}
	}
	if len(serving) == 1 && serving[0].request.empty() && serving[0].response.empty() {
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: serving[0].upstream.name()}
	} else {
		a.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted(serving)}
	}
	out.Action = &routev3.Route_Route{Route: a}
	out.RequestHeadersToAdd, out.RequestHeadersToRemove = p.request.set, p.request.remove
	out.ResponseHeadersToAdd, out.ResponseHeadersToRemove = p.response.set, p.response.remove
	return out
}

// mirrorPolicy: no weight means all requests.
func (t *target) mirrorPolicy() *routev3.RouteAction_RequestMirrorPolicy {
	percent := t.weight
	if percent == 0 {
		percent = 100
	}
	return &routev3.RouteAction_RequestMirrorPolicy{
		Cluster: t.upstream.name(),
		RuntimeFraction: &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{
			Numerator: percent, Denominator: typev3.FractionalPercent_HUNDRED,
		}},
	}
}

// weighted spreads requests by weight; evenly when no weight is given.
func weighted(targets []target) *routev3.WeightedCluster {
	var total uint64
	for i := range targets {
		total += uint64(targets[i].weight)
	}
	out := &routev3.WeightedCluster{Clusters: make([]*routev3.WeightedCluster_ClusterWeight, 0, len(targets))}
	for i := range targets {
		t := &targets[i]
		weight := t.weight
		if total == 0 {
			weight = 1
		}
		c := &routev3.WeightedCluster_ClusterWeight{
			Name: t.upstream.name(), Weight: wrapperspb.UInt32(weight),
			RequestHeadersToAdd: t.request.set, RequestHeadersToRemove: t.request.remove,
			ResponseHeadersToAdd: t.response.set, ResponseHeadersToRemove: t.response.remove,
		}
		if t.request.host != "" {
			c.HostRewriteSpecifier = &routev3.WeightedCluster_ClusterWeight_HostRewriteLiteral{HostRewriteLiteral: t.request.host}
		}
		out.Clusters = append(out.Clusters, c)
	}
	slices.SortStableFunc(out.Clusters, func(a, b *routev3.WeightedCluster_ClusterWeight) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Weight.Value, b.Weight.Value))
	})
	return out
}

// checkWeights: Envoy adds the weights up in 32 bits.
func checkWeights(weights []int64) error {
	var total int64
	for _, w := range weights {
		if w < 0 || w > math.MaxUint32 {
			return fmt.Errorf("weight %s is not in the range 0-%s", strconv.FormatInt(w, 10), strconv.FormatUint(math.MaxUint32, 10))
		}
		total += w
	}
	if total > math.MaxUint32 {
		return fmt.Errorf("the weights add up to %d, more than %d", total, uint32(math.MaxUint32))
	}
	return nil
}

func upstreams(targets []target) []upstream {
	out := make([]upstream, 0, len(targets))
	for i := range targets {
		out = append(out, targets[i].upstream)
	}
	return out
}
