package main

import (
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/envoy"
)

// table shows what the story came to.
func (d *demo) table() string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s hosts, %d restarts by SIGKILL\n\n", grouped(d.config.hosts), d.config.restarts)
	w := tabwriter.NewWriter(&out, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(name string, cells ...string) { fmt.Fprintf(w, "%s\t%s\t\n", name, strings.Join(cells, "\t")) }

	var heads, times, responses, resources, removals, bytes []string
	for i, s := range d.starts {
		heads = append(heads, map[bool]string{true: "first start", false: fmt.Sprintf("restart %d", i)}[i == 0])
		times = append(times, s.settled.Round(10*time.Millisecond).String())
		responses = append(responses, grouped(int(s.sent.Responses)))
		resources = append(resources, grouped(int(s.sent.Resources)))
		removals = append(removals, grouped(int(s.sent.Removed)))
		bytes = append(bytes, grouped(int(s.sent.Bytes)))
	}
	row("", heads...)
	row("until ready", times...)
	row("responses sent", responses...)
	row("resources sent", resources...)
	row("removals sent", removals...)
	row("bytes sent", bytes...)
	row("")
	row("requests", grouped(int(d.load.Requests)))
	row("failed requests", grouped(int(d.load.Failed)))
	row("latency, median / 99 % / longest", fmt.Sprintf("%v / %v / %v", d.load.P50, d.load.P99, d.load.Max))
	row("")
	row("in Envoy", "held", "removed")
	for _, k := range envoy.Kinds {
		row(string(k), grouped(len(d.after.Holdings[k])), grouped(d.after.Removed(d.before, k)))
	}
	row("")
	d.memoryRows(row)
	_ = w.Flush() // into memory
	return out.String()
}

func (d *demo) memoryRows(row func(string, ...string)) {
	var holdfast, envoy []string
	for _, m := range d.memory {
		holdfast, envoy = append(holdfast, megabytes(m.holdfast.RSS)), append(envoy, megabytes(m.envoy.RSS))
	}
	row("memory", "when ready", "at the end")
	row("holdfast", holdfast...)
	row("Envoy", envoy...)
}

// verdict is an error for each figure that must be 0 and is not.
func (d *demo) verdict() error {
	var errs []error
	if d.load.Failed > 0 || d.load.Requests == 0 {
		errs = append(errs, fmt.Errorf("requests failed: %v", d.load))
	}
	for i, s := range d.starts[1:] {
		if s.sent.Resources+s.sent.Removed > 0 {
			errs = append(errs, fmt.Errorf("after restart %d holdfast sent %d resources and %d removals, though nothing had changed", i+1, s.sent.Resources, s.sent.Removed))
		}
	}
	if err := d.after.Check(d.before); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n>>20) }

// grouped writes a number with a comma between thousands.
func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
