//go:build faults

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// page is docs/faults.md.
func (m *matrix) page(code string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# What faults come to

Written by `+"`make faults`"+`, not by hand. A real kube-apiserver, etcd and Envoy; %d HTTPProxies (a tenth
with TLS) and %d Ingresses; %d requests/s meanwhile, a third of them on fresh connections. Where a fault
has a length, it is %v.

| | |
|---|---|
| commit | %s |
| machine | %d processors, %s of memory, %s/%s |

*Failed* are requests not answered by the right backend with 200. *Removed* is what Envoy lost. *Recovered*
counts from the fault's end until a host written meanwhile is served, all lists are complete and nothing is withheld.

`, len(m.hosts), len(m.ingresses), faultLoad, m.outage, code, runtime.NumCPU(), memory(), runtime.GOOS, runtime.GOARCH)
	b.WriteString(m.table())
	return b.Bytes()
}

func (m *matrix) table() string {
	var b strings.Builder
	b.WriteString("| fault | requests | failed | slowest | removed | recovered | what `holdfast status` says |\n|---|--:|--:|--:|---|--:|---|\n")
	for _, l := range m.lines {
		name := l.name
		if l.meant != "" {
			name += " (" + l.meant + ")"
		}
		if l.broken {
			name = "**not as promised:** " + name
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %v | %s | %.1f s | %s |\n", cell(name), l.report.Requests, l.report.Failed, l.report.Max.Round(time.Millisecond),
			l.removals(), l.recovered.Seconds(), cell(strings.Join(l.says, "<br>")))
	}
	return b.String()
}

func (l *line) removals() string {
	if len(l.removed) == 0 {
		return "0"
	}
	var out []string
	for _, k := range sortedKeys(l.removed) {
		out = append(out, fmt.Sprintf("%d %s", l.removed[k], k))
	}
	return strings.Join(out, ", ")
}

// cell makes a text fit for a table's cell.
func cell(s string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s) }

func memory() string {
	all, err := os.ReadFile("/proc/meminfo")
	var kb uint64
	if _, err2 := fmt.Sscanf(string(all), "MemTotal: %d kB", &kb); err != nil || err2 != nil {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.0f GiB", float64(kb)/(1<<20))
}
