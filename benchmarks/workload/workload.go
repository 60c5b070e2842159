// Package workload says what a benchmark's cluster holds and how it is edited.
//
// The first N hosts are e2e/fixture's, streamed object by object. Edits always
// fall on the same hosts, whatever N is, and new hosts always have the same
// numbers: so what one change costs can be compared between 300 and 100,000
// hosts byte by byte.
package workload

import (
	"iter"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

// TLSPercent of the hosts have a certificate of their own, as on the
// installation that the project's figures are compared with.
const TLSPercent = 10

// firstNew is the number of the first host that an edit adds; larger than any
// benchmark.
const firstNew = 200_000

// newHosts is how many numbers edits may take.
const newHosts = 5000

// Smallest is the least number of hosts of a workload: edits fall on these.
const Smallest = 300

// Workload is N hosts and the edits made so far.
type Workload struct {
	Hosts int

	gen   *fixture.Generator
	turns map[Edit]int
	added []int // numbers of hosts that edits added and did not delete
}

// Anywhere are backend addresses that nobody listens on.
func Anywhere() []fixture.Backend {
	var out []fixture.Backend
	for i := range 4 {
		b := fixture.Backend{Name: "backend-" + string(rune('a'+i))}
		for j := range 3 {
			b.Addrs = append(b.Addrs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i), byte(j + 1)}), 8080))
		}
		out = append(out, b)
	}
	return out
}

// New gives a workload; hosts is at least Smallest.
func New(hosts int, backends []fixture.Backend) *Workload {
	return newWorkload(hosts, backends, TLSPercent)
}

// NewTLS gives one in which every host has a certificate. Of the edits only
// TLSHost and Certificate are what they say.
func NewTLS(hosts int, backends []fixture.Backend) *Workload {
	return newWorkload(hosts, backends, 100)
}

func newWorkload(hosts int, backends []fixture.Backend, percent int) *Workload {
	return &Workload{
		Hosts: max(hosts, Smallest), turns: map[Edit]int{},
		gen: fixture.New(fixture.Options{Seed: 1, TLSPercent: percent, Backends: backends}),
	}
}

// CA that signs the hosts' certificates, PEM.
func (w *Workload) CA() []byte { return w.gen.CA() }

// Host gives one of the first hosts, as it was before any edit.
func (w *Workload) Host(i int) fixture.Host { return w.gen.Host(i) }

// Objects streams the objects of all hosts, with what they share and the
// namespaces. None is kept.
func (w *Workload) Objects() iter.Seq[fixture.Object] {
	return func(yield func(fixture.Object) bool) {
		for _, o := range w.shared() {
			if !yield(o) {
				return
			}
		}
		for i := range w.Hosts {
			for _, o := range w.gen.Host(i).Objects {
				if !yield(o) {
					return
				}
			}
		}
	}
}

// shared gives namespaces, and the Services that several hosts use, for the
// first hosts and for those that edits may add.
func (w *Workload) shared() []fixture.Object {
	var out []fixture.Object
	in := map[string]bool{"kube-system": true}
	for _, ns := range fixture.Namespaces(w.Hosts) {
		in[ns] = true
	}
	before := len(fixture.Namespaces(firstNew - fixture.Spare)) // those are all before firstNew
	for _, ns := range fixture.Namespaces(firstNew + newHosts)[before:] {
		in[ns] = true
	}
	for _, ns := range slices.Sorted(maps.Keys(in)) {
		out = append(out, namespace(ns))
	}
	for _, o := range w.gen.Shared(firstNew + newHosts) {
		if in[o.GetNamespace()] {
			out = append(out, o)
		}
	}
	return out
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
	}
}
