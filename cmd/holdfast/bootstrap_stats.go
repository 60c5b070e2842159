package main

import (
	metricsv3 "github.com/envoyproxy/go-control-plane/envoy/config/metrics/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// Most of what an idle cluster costs Envoy is its 112 statistics. These are the
// ones that dashboards and alerts use: 10,000 clusters take 331 MB with them and
// 637 MB with all (Envoy 1.40). Each RouteConfiguration has twelve more, under
// http.<prefix>.rds.; there is one for each host, so they are left out.
var (
	leanPrefixes = []string{
		"http.ingress_http.downstream_", "http.ingress_https.downstream_", "http.ingress_http.scoped_rds", "http.ingress_https.scoped_rds",
		"http.ingress_http.no_route", "http.ingress_https.no_route", "http.ingress_http.no_cluster", "http.ingress_https.no_cluster", "http.admin.",
		"listener", "server.", "cluster_manager.", "control_plane.", "cluster." + xdsCluster + ".",
	}
	leanSuffixes = []string{"upstream_rq_2xx", "upstream_rq_4xx", "upstream_rq_5xx", "membership_healthy"}
)

func (b *envoyBootstrap) statsConfig() *metricsv3.StatsConfig {
	if b.fullStats {
		return nil
	}
	list := &matcherv3.ListStringMatcher{}
	for _, p := range leanPrefixes {
		list.Patterns = append(list.Patterns, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: p}})
	}
	for _, s := range leanSuffixes {
		list.Patterns = append(list.Patterns, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: s}})
	}
	return &metricsv3.StatsConfig{StatsMatcher: &metricsv3.StatsMatcher{StatsMatcher: &metricsv3.StatsMatcher_InclusionList{InclusionList: list}}}
}
