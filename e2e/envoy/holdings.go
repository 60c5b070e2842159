package envoy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Kind of configuration that an Envoy holds.
type Kind string

// The kinds.
const (
	Clusters  Kind = "clusters"
	Endpoints Kind = "endpoints"
	Listeners Kind = "listeners"
	Routes    Kind = "routes" // RouteConfigurations
	Scopes    Kind = "scopes"
	Secrets   Kind = "secrets"
)

// Kinds lists them in the order of a report.
var Kinds = []Kind{Clusters, Endpoints, Routes, Scopes, Listeners, Secrets}

// Holdings is all dynamic configuration of an Envoy: names by kind, each with
// when Envoy last took an update of it.
//
// Envoy counts removed clusters and listeners, but neither routes nor scopes:
// for those, compare two Holdings.
type Holdings map[Kind]map[string]string

// Holdings asks Envoy for all that it holds.
func (e *Envoy) Holdings(ctx context.Context) (Holdings, error) {
	raw, err := e.get(ctx, "/config_dump?include_eds")
	if err != nil {
		return nil, err
	}
	var d dump
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("envoy config_dump: %w", err)
	}
	h := Holdings{}
	for _, k := range Kinds {
		h[k] = map[string]string{}
	}
	for i := range d.Configs {
		d.Configs[i].into(h)
	}
	return h, nil
}

// dump is what is needed of a config_dump. Its sections have disjoint fields,
// so one struct reads them all.
type dump struct{ Configs []section }

type section struct {
	Clusters []struct {
		stamp
		Cluster struct{ Name string }
	} `json:"dynamic_active_clusters"`
	Endpoints []struct {
		stamp
		Endpoint struct {
			Name string `json:"cluster_name"`
		} `json:"endpoint_config"`
	} `json:"dynamic_endpoint_configs"`
	Listeners []struct {
		Name   string
		Active stamp `json:"active_state"`
	} `json:"dynamic_listeners"`
	Routes []struct {
		stamp
		Route struct{ Name string } `json:"route_config"`
	} `json:"dynamic_route_configs"`
	Scopes []struct {
		Scopes []struct{ Name string } `json:"scoped_route_configs"`
	} `json:"dynamic_scoped_route_configs"`
	Secrets []struct {
		stamp
		Name string
	} `json:"dynamic_active_secrets"`
}

type stamp struct {
	Updated string `json:"last_updated"`
	Version string `json:"version_info"`
}

func (s *section) into(h Holdings) {
	for _, c := range s.Clusters {
		h[Clusters][c.Cluster.Name] = c.Updated
	}
	for _, e := range s.Endpoints {
		h[Endpoints][e.Endpoint.Name] = e.Updated
	}
	for _, l := range s.Listeners {
		h[Listeners][l.Name] = l.Active.Updated
	}
	for _, r := range s.Routes {
		h[Routes][r.Route.Name] = r.Updated
	}
	for _, group := range s.Scopes {
		for _, x := range group.Scopes {
			h[Scopes][x.Name] = "" // Envoy keeps no time for a scope
		}
	}
	for _, x := range s.Secrets {
		h[Secrets][x.Name] = x.Updated
	}
}

// Lost gives the names of a kind that were held before and are no longer.
func (h Holdings) Lost(before Holdings, k Kind) []string {
	var out []string
	for name := range before[k] {
		if _, ok := h[k][name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Touched gives the names that were held before and were updated since.
func (h Holdings) Touched(before Holdings, k Kind) []string {
	var out []string
	for name, at := range before[k] {
		if now, ok := h[k][name]; ok && now != at {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// String gives the number of each kind.
func (h Holdings) String() string {
	counts := map[Kind]int{}
	for _, k := range slices.Sorted(maps.Keys(h)) {
		counts[k] = len(h[k])
	}
	return fmt.Sprint(counts)
}
