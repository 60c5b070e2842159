package main

import (
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/e2e/envoy"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

func good() *demo {
	held := envoy.Holdings{envoy.Clusters: {"a": "1"}, envoy.Routes: {"r": "1"}}
	return &demo{
		config: config{hosts: 3407, restarts: 1}, load: load.Report{Requests: 1000},
		starts: []start{{sent: holdfast.Sent{Resources: 7}}, {}},
		before: rig.Moment{Holdings: held}, after: rig.Moment{Holdings: held},
	}
}

func TestVerdict(t *testing.T) {
	if err := good().verdict(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*demo){
		"requests failed":    func(d *demo) { d.load.Failed = 1 },
		"1 resources":        func(d *demo) { d.starts[1].sent.Resources = 1 },
		"1 removals":         func(d *demo) { d.starts[1].sent.Removed = 1 },
		"1 routes removed":   func(d *demo) { d.after.Holdings = envoy.Holdings{envoy.Clusters: {"a": "1"}} },
		"1 clusters updated": func(d *demo) { d.after.Holdings = envoy.Holdings{envoy.Clusters: {"a": "2"}, envoy.Routes: {"r": "1"}} },
	} {
		d := good()
		spoil(d)
		if err := d.verdict(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTable(t *testing.T) {
	text := good().table()
	for _, want := range []string{"3,407 hosts", "first start", "restart 1", "failed requests", "scopes", "1,000"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
