package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast-xds/holdfast/delta"
)

// envoyAdmin is the admin interface of an Envoy.
type envoyAdmin struct{ address string }

const envoyWhat = "an Envoy's admin address (--envoy-admin)"

// node gives the Envoy's node id.
func (e envoyAdmin) node(ctx context.Context) (string, error) {
	body, err := fetch(ctx, envoyWhat, "http://"+e.address+"/server_info")
	if err != nil {
		return "", err
	}
	var info struct{ Node struct{ ID string } }
	if err := json.Unmarshal(body, &info); err != nil || info.Node.ID == "" {
		return "", fmt.Errorf("http://%s/server_info does not tell a node id: is it %s?", e.address, envoyWhat)
	}
	return info.Node.ID, nil
}

// reported is what an Envoy says that it has of one type: versions by name. Envoy
// tells no versions of endpoints and scopes.
type reported map[string]string

// dumps are the questions, by type: names and versions only, since a whole dump of a
// large Envoy costs it tens of megabytes for good.
var dumps = map[string][]string{
	delta.Cluster: {
		"resource=dynamic_active_clusters&mask=cluster.name,version_info",
		"resource=dynamic_warming_clusters&mask=cluster.name,version_info",
	},
	delta.Endpoints:          {"include_eds&resource=dynamic_endpoint_configs&mask=endpoint_config.cluster_name"},
	delta.Listener:           {"resource=dynamic_listeners&mask=name,active_state.version_info,warming_state.version_info"},
	delta.RouteConfiguration: {"resource=dynamic_route_configs&mask=route_config.name,version_info"},
	delta.ScopedRoutes:       {"resource=dynamic_scoped_route_configs&mask=scoped_route_configs"},
	delta.Secret: {
		"resource=dynamic_active_secrets&mask=name,version_info",
		"resource=dynamic_warming_secrets&mask=name,version_info",
	},
}

// inventory gives all that the Envoy got by xDS, by type URL.
func (e envoyAdmin) inventory(ctx context.Context) (map[string]reported, error) {
	out := map[string]reported{}
	for url, queries := range dumps {
		out[url] = reported{}
		for _, q := range queries {
			if err := e.dump(ctx, q, out[url]); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func (e envoyAdmin) dump(ctx context.Context, query string, into reported) error {
	body, err := fetch(ctx, envoyWhat, "http://"+e.address+"/config_dump?"+query)
	if err != nil {
		return err
	}
	var answer struct{ Configs []dumpEntry }
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("http://%s/config_dump does not look like Envoy's: is it %s? %w", e.address, envoyWhat, err)
	}
	for i := range answer.Configs {
		answer.Configs[i].into(into)
	}
	return nil
}

// dumpEntry is one of a config_dump's. The types have disjoint fields, so one
// struct reads them all.
type dumpEntry struct {
	Name    string // of a listener or secret
	Version string `json:"version_info"`
	Cluster struct{ Name string }
	Route   struct{ Name string } `json:"route_config"`
	Active  dumpState             `json:"active_state"` // of a listener
	Warming dumpState             `json:"warming_state"`
	// Endpoints are named by their cluster.
	Endpoint struct {
		Name string `json:"cluster_name"`
	} `json:"endpoint_config"`
	Scopes []struct{ Name string } `json:"scoped_route_configs"`
}

type dumpState struct {
	Version string `json:"version_info"`
}

// uninitialized is what Envoy gives as the version of a secret that it asks for and
// has not got.
const uninitialized = "uninitialized"

func (d *dumpEntry) into(r reported) {
	if d.Scopes != nil {
		for _, s := range d.Scopes {
			r[s.Name] = ""
		}
		return
	}
	name := cmp.Or(d.Name, d.Cluster.Name, d.Route.Name, d.Endpoint.Name)
	version := cmp.Or(d.Warming.Version, d.Active.Version, d.Version)
	if _, active := r[name]; active || version == uninitialized {
		return // of something that warms, the version in use counts
	}
	r[name] = version
}
