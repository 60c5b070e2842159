// Package report keeps, prints, draws and compares what the benchmarks measure.
package report

import (
	"cmp"
	"slices"
	"time"
)

// Metric names one figure. Its unit is part of the name.
type Metric string

// The metrics. Those marked so in Portable do not depend on the machine.
const (
	Derivations Metric = "derivations"
	Resources   Metric = "resources"
	Removed     Metric = "removed"
	Bytes       Metric = "bytes"
	Allocs      Metric = "allocs"
	AllocBytes  Metric = "alloc_bytes"

	CPU       Metric = "cpu_ms"       // of the process under test
	EnvoyCPU  Metric = "envoy_cpu_ms" // all threads of Envoy
	EnvoyMain Metric = "envoy_main_ms"
	Acked50   Metric = "acked_p50_ms" // from write to ACK
	Acked99   Metric = "acked_p99_ms"
	AckedMax  Metric = "acked_max_ms"
	Served50  Metric = "served_p50_ms" // from write to the first request so answered
	Served99  Metric = "served_p99_ms"
	// Parts of the time from write to Envoy's ACK: from hearing of it to the response; from
	// the response to the ACK; and all but the latter.
	Own50      Metric = "own_p50_ms"
	Own99      Metric = "own_p99_ms"
	EnvoyAck50 Metric = "envoy_ack_p50_ms"
	Beyond99   Metric = "beyond_envoy_p99_ms"

	Start    Metric = "start_ms" // from the start of the process
	Connect  Metric = "connect_ms"
	RSS      Metric = "rss_mb"
	Peak     Metric = "peak_mb"
	EnvoyRSS Metric = "envoy_rss_mb"
	Heap     Metric = "heap_mb"
	PerHost  Metric = "kb_per_host"
	Requests Metric = "requests"
	Failed   Metric = "failed"
	Rate     Metric = "changes_per_s"
)

// Metrics lists them in the order of a table.
var Metrics = []Metric{
	Derivations, Resources, Removed, Bytes, Allocs, AllocBytes, CPU, EnvoyCPU, EnvoyMain, Acked50, Acked99, AckedMax, Served50, Served99, Own50, Own99, EnvoyAck50, Beyond99,
	Start, Connect, Rate, RSS, Peak, Heap, PerHost, EnvoyRSS, Requests, Failed,
}

// Portable metrics depend on the code and the workload alone.
var Portable = []Metric{Derivations, Resources, Removed, Bytes, Allocs, AllocBytes}

// Row is what one scenario gave for one subject.
type Row struct {
	Scenario string             `json:"scenario"` // "edit", "restart", …
	Variant  string             `json:"variant,omitempty"`
	Subject  string             `json:"subject"` // what was measured: "holdfast", a peer
	Source   string             `json:"source"`  // where its objects came from
	Hosts    int                `json:"hosts"`
	Clients  int                `json:"clients"`
	Figures  map[Metric]float64 `json:"figures"`
	Note     string             `json:"note,omitempty"`
}

// key names a row among those of a run.
func (r *Row) key() string {
	return r.Scenario + "/" + r.Variant + "/" + r.Subject + "/" + r.Source + "/" + itoa(r.Hosts) + "/" + itoa(r.Clients)
}

// Run is one run of the suite.
type Run struct {
	Date    time.Time `json:"date"`
	Commit  string    `json:"commit"`
	Go      string    `json:"go"`
	Machine Machine   `json:"machine"`
	Mode    string    `json:"mode"`
	Took    string    `json:"took"`
	Rows    []Row     `json:"rows"`
}

// Machine says where it ran.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int    `json:"memoryMB"`
	OS     string `json:"os"`
	// Load of the machine when the run began, as the kernel tells it.
	Load string `json:"load"`
}

// Add appends a row and gives it.
func (r *Run) Add(row Row) { r.Rows = append(r.Rows, row) }

// Find gives the rows of a scenario, by hosts and clients.
func (r *Run) Find(scenario string) []Row {
	var out []Row
	for _, x := range r.Rows {
		if x.Scenario == scenario {
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Variant, b.Variant), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Hosts, b.Hosts), cmp.Compare(a.Clients, b.Clients))
	})
	return out
}

// Quantile of unsorted durations, in milliseconds; 0 of none.
func Quantile(d []time.Duration, q float64) float64 {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	i := min(len(s)-1, int(q*float64(len(s))))
	return Milliseconds(s[i])
}

// Milliseconds of a duration.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Megabytes of bytes: 2^20.
func Megabytes(b int64) float64 { return float64(b) / (1 << 20) }
