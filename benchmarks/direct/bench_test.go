package direct

import (
	"fmt"
	"maps"
	"testing"

	"github.com/holdfast-xds/holdfast/benchmarks/workload"
)

// sizes to be compared with each other: nothing but Load and Connect may depend
// on them.
var sizes = []int{300, 3407, 10_000}

func each(b *testing.B, f func(b *testing.B, hosts int)) {
	for _, hosts := range sizes {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) { f(b, hosts) })
	}
}

func mustLoad(b *testing.B, hosts int) (*workload.Workload, *Source) {
	b.Helper()
	s, err := loaded(hosts, 0)
	if err != nil {
		b.Fatal(err)
	}
	return workload.New(hosts, workload.Anywhere()), s
}

// BenchmarkLoad fills an index: what a start costs beyond decoding.
func BenchmarkLoad(b *testing.B) {
	each(b, func(b *testing.B, hosts int) {
		b.ReportAllocs()
		for b.Loop() {
			mustLoad(b, hosts)
		}
	})
}

// BenchmarkFresh connects a client that holds nothing.
func BenchmarkFresh(b *testing.B) {
	each(b, func(b *testing.B, hosts int) {
		_, s := mustLoad(b, hosts)
		b.ReportAllocs()
		for b.Loop() {
			NewClient().Connect(s.Index)
		}
	})
}

// BenchmarkReconnect connects a client that holds everything.
func BenchmarkReconnect(b *testing.B) {
	each(b, func(b *testing.B, hosts int) {
		_, s := mustLoad(b, hosts)
		c := NewClient()
		c.Connect(s.Index)
		held := maps.Clone(c.Held)
		b.ReportAllocs()
		for b.Loop() {
			c.Held = maps.Clone(held)
			c.Connect(s.Index)
		}
	})
}

// BenchmarkEdit makes one edit of each sort, with one client.
func BenchmarkEdit(b *testing.B) {
	each(b, func(b *testing.B, hosts int) {
		w, s := mustLoad(b, hosts)
		c := NewClient()
		c.Connect(s.Index)
		bench := &Bench{Work: w, Source: s, Client: c}
		for _, e := range workload.Edits {
			if e == workload.DeletedHost {
				continue // needs one added before each
			}
			b.Run(string(e), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, changes := w.Next(e)
					bench.apply(changes)
				}
			})
		}
	})
}
