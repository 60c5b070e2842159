package report

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// ratio compares a figure of ours with another subject's, in the same scenario at
// the same size, measured in the same run.
type ratio struct {
	what, scenario, variant string
	metric                  Metric
	subject                 string // the other
	target                  string
}

// The subjects' names, as the suite writes them.
const (
	ours      = "holdfast"
	delta     = "go-control-plane-delta"
	sotw      = "go-control-plane-sotw"
	informers = "client-go-informers"
)

var ratios = []ratio{
	{"start to first complete push, over the informers' lists", "first-start", "", Start, informers, "at most 1.5"},
	{"CPU of a start, over the informers'", "first-start", "", CPU, informers, ""},
	{"CPU of a route edit, over the snapshot cache's", "edit", "route", CPU, delta, "at most 0.1"},
	{"CPU of an endpoint edit, over the snapshot cache's", "edit", "endpoint", CPU, delta, "at most 0.1"},
	{"CPU of a route edit, over the cache's by state of the world", "edit", "route", CPU, sotw, "at most 0.1"},
	{"bytes of a route edit, over the cache's by state of the world", "edit", "route", Bytes, sotw, ""},
	{"memory, over the snapshot cache's", "first-start", "", RSS, delta, "at most 0.1"},
}

// Ratios prints how we compare with the peers that were measured.
func (r *Run) Ratios(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	heading := "\nHOLDFAST OVER ITS PEERS\tSOURCE\tHOSTS\tRATIO\tTARGET\n"
	for _, x := range ratios {
		for _, a := range r.Rows {
			if a.Scenario != x.scenario || a.Variant != x.variant || a.Subject != ours {
				continue
			}
			for _, b := range r.Rows {
				if b.Scenario == x.scenario && b.Variant == x.variant && b.Subject == x.subject && b.Source == a.Source && b.Hosts == a.Hosts && b.Figures[x.metric] > 0 {
					fmt.Fprintf(w, "%s%s\t%s\t%d\t%s\t%s\n", heading, x.what, a.Source, a.Hosts, Number(a.Figures[x.metric]/b.Figures[x.metric]), dash(x.target))
					heading = ""
				}
			}
		}
	}
	return w.Flush()
}
