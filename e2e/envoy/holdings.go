package envoy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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
	h := Holdings{}
	for _, k := range Kinds {
		h[k] = map[string]string{}
		d, err := e.dump(ctx, k)
		if err != nil {
			return nil, err
		}
		for i := range d {
			d[i].into(h[k])
		}
	}
	return h, nil
}

// queries ask for names and times only: a whole dump of a large Envoy costs it
// 25 MB of memory for good.
var queries = map[Kind]string{
	Clusters:  "resource=dynamic_active_clusters&mask=cluster.name,last_updated",
	Endpoints: "include_eds&resource=dynamic_endpoint_configs&mask=endpoint_config.cluster_name",
	Listeners: "resource=dynamic_listeners&mask=name,active_state.last_updated",
	Routes:    "resource=dynamic_route_configs&mask=route_config.name,last_updated",
	Scopes:    "resource=dynamic_scoped_route_configs&mask=scoped_route_configs",
	Secrets:   "resource=dynamic_active_secrets&mask=name,last_updated",
}

func (e *Envoy) dump(ctx context.Context, k Kind) ([]entry, error) {
	raw, err := e.get(ctx, "/config_dump?"+queries[k])
	if errors.Is(err, errNoSuchDump) {
		return nil, nil // an Envoy that never had any of the kind has no such part
	}
	if err != nil {
		return nil, err
	}
	var answer struct{ Configs []entry }
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("envoy config_dump of %s: %w", k, err)
	}
	return answer.Configs, nil
}

// entry is one of a config_dump's. The kinds have disjoint fields, so one struct
// reads them all. Envoy tells no time for endpoints and scopes.
type entry struct {
	Name    string // of a listener or secret
	Updated string `json:"last_updated"`
	Cluster struct{ Name string }
	Route   struct{ Name string } `json:"route_config"`
	Active  struct {
		Updated string `json:"last_updated"`
	} `json:"active_state"` // of a listener
	Endpoint struct {
		Name string `json:"cluster_name"`
	} `json:"endpoint_config"`
	Scopes []struct{ Name string } `json:"scoped_route_configs"`
}

func (e *entry) into(names map[string]string) {
	if e.Scopes != nil {
		for _, s := range e.Scopes {
			names[s.Name] = ""
		}
		return
	}
	name := cmp.Or(e.Name, e.Cluster.Name, e.Route.Name, e.Endpoint.Name)
	names[name] = cmp.Or(e.Updated, e.Active.Updated)
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
