package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// Table prints the run as one table: a line for each row, its figures as
// name=value in a fixed order, since hardly two scenarios have the same ones.
func (r *Run) Table(out io.Writer) error {
	fmt.Fprintf(out, "holdfast benchmarks, %s, commit %s, %s, %s on %d cores, %s\n\n",
		r.Date.Format("2006-01-02"), r.Commit, r.Go, r.Machine.CPU, r.Machine.Cores, r.Mode)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SCENARIO\tVARIANT\tSUBJECT\tSOURCE\tHOSTS\tCLIENTS\tFIGURES")
	for i := range r.Rows {
		x := &r.Rows[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", x.Scenario, dash(x.Variant), x.Subject, x.Source, x.Hosts, x.Clients, x.figures())
	}
	return w.Flush()
}

func (r *Row) figures() string {
	s := ""
	for _, m := range Metrics {
		v, ok := r.Figures[m]
		if !ok {
			continue
		}
		if s != "" {
			s += "  "
		}
		s += string(m) + "=" + Number(v)
	}
	if r.Note != "" {
		s += "  (" + r.Note + ")"
	}
	return s
}

// Number gives three significant digits, or all of a large one.
func Number(v float64) string {
	switch {
	case v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func itoa(n int) string { return strconv.Itoa(n) }

// String gives the row on one line.
func (r *Row) String() string {
	return r.Scenario + " " + dash(r.Variant) + " " + r.Subject + " hosts=" + itoa(r.Hosts) + " clients=" + itoa(r.Clients) + "  " + r.figures()
}
