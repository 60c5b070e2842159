package direct

import (
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/benchmarks/report"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// Bench measures the index with one client at one size.
type Bench struct {
	Work   *workload.Workload
	Source *Source
	Client *Client
	run    *report.Run
	before uint64 // heap before anything was loaded
}

// subject and source of this package's rows.
const (
	subject = "index+delta"
	source  = "synthetic"
)

// Measure runs all of the package's scenarios at one size and adds their rows.
func Measure(run *report.Run, hosts, repeat int) error {
	b, err := load(run, hosts)
	if err != nil {
		return err
	}
	b.edits(repeat)
	return b.restarts()
}

// load measures the first start: all objects into an empty index, and a fresh
// client up to its last ACK.
func load(run *report.Run, hosts int) (*Bench, error) {
	b := &Bench{run: run, Work: workload.New(hosts, workload.Anywhere()), before: heap()}
	s, err := NewSource()
	if err != nil {
		return nil, err
	}
	b.Source = s
	cost := measure(func() { s.Load(b.Work) })
	held := float64(heap()-b.before) / 1024
	b.Client = NewClient()
	first := measure(func() { b.Client.Connect(s.Index) })
	figures := sent(b.Client.Sent, Sent{}, 1)
	figures[report.Heap] = held / 1024
	figures[report.PerHost] = held / float64(hosts)
	figures[report.Allocs] = float64(cost.allocs+first.allocs) / float64(hosts)
	figures[report.CPU] = report.Milliseconds(cost.took + first.took)
	b.add("first-start", "", figures, "allocations for each host")
	return b, nil
}

// edits measures each sort of edit some times. Figures are means; of allocations it
// is the median, which does not see the one edit for which a table had to grow.
func (b *Bench) edits(repeat int) {
	for _, e := range workload.Edits {
		before := b.Client.Sent
		var allocs, bytes []uint64
		var took time.Duration
		derivations := 0
		for range repeat {
			_, changes := b.Work.Next(e)
			c := b.quietly(func() { derivations += b.apply(changes) })
			allocs, bytes, took = append(allocs, c.allocs), append(bytes, c.bytes), took+c.took
		}
		n := float64(repeat)
		figures := sent(b.Client.Sent, before, n)
		figures[report.Derivations] = float64(derivations) / n
		figures[report.Allocs] = median(allocs)
		figures[report.AllocBytes] = median(bytes)
		figures[report.CPU] = report.Milliseconds(took) / n
		b.add("edit", string(e), figures, "")
	}
}

// apply makes an edit known to index and client, and counts the derivations.
func (b *Bench) apply(changes []workload.Change) int {
	n := 0
	for _, commit := range b.Source.Write(changes) {
		n += len(commit.Derivations)
		b.Client.Advance()
	}
	b.Client.Pass(settle)
	return n
}

// changedMeanwhile is how many hosts are edited while the control plane is away.
const changedMeanwhile = 10

// restarts measures what a client that comes back is sent by an index that was
// filled anew: with the same objects, with some of them changed, and while one
// kind's list has not ended.
func (b *Bench) restarts() error {
	client := NewClient()
	first, err := loaded(b.Work.Hosts, 0)
	if err != nil {
		return err
	}
	client.Connect(first.Index)
	held := maps.Clone(client.Held)
	for _, x := range []struct {
		variant  string
		edits    int
		heldBack []index.Kind
	}{
		{"unchanged", 0, nil},
		{"changed", changedMeanwhile, nil},
		{"slow-kind", 0, []index.Kind{kinds.EndpointSlice}},
	} {
		client.Held = maps.Clone(held)
		fresh, err := loaded(b.Work.Hosts, x.edits, x.heldBack...)
		if err != nil {
			return err
		}
		before := client.Sent
		c := measure(func() { client.Connect(fresh.Index) })
		figures := sent(client.Sent, before, 1)
		figures[report.CPU] = report.Milliseconds(c.took)
		figures[report.AllocBytes] = float64(c.bytes)
		b.add("restart", x.variant, figures, "")
	}
	return nil
}

// loaded gives a source that has loaded the workload after some route edits.
func loaded(hosts, edits int, heldBack ...index.Kind) (*Source, error) {
	s, err := NewSource()
	if err != nil {
		return nil, err
	}
	w := workload.New(hosts, workload.Anywhere())
	s.Load(w, heldBack...)
	for range edits {
		_, changes := w.Next(workload.Route)
		s.Write(changes)
	}
	return s, nil
}

func (b *Bench) add(scenario, variant string, figures map[report.Metric]float64, note string) {
	b.run.Add(report.Row{
		Scenario: scenario, Variant: variant, Subject: subject, Source: source,
		Hosts: b.Work.Hosts, Clients: 1, Figures: figures, Note: note,
	})
}

func sent(now, before Sent, n float64) map[report.Metric]float64 {
	return map[report.Metric]float64{
		report.Resources: float64(now.Resources-before.Resources) / n,
		report.Removed:   float64(now.Removed-before.Removed) / n,
		report.Bytes:     float64(now.Bytes-before.Bytes) / n,
	}
}

// cost of a function.
type cost struct {
	allocs, bytes uint64
	took          time.Duration
}

func median(of []uint64) float64 {
	slices.Sort(of)
	return float64(of[len(of)/2])
}

// quietly measures f with the collector off: a collection in the middle would be
// counted, or not, by chance.
func (b *Bench) quietly(f func()) cost {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return measure(f)
}

func measure(f func()) cost {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	f()
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return cost{after.Mallocs - before.Mallocs, after.TotalAlloc - before.TotalAlloc, took}
}

// heap gives what is reachable.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
