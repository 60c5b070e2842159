// Package direct drives the index and the stream machine in this process, in
// one goroutine, without Kubernetes, gRPC or clocks: what it counts (derivations,
// resources, bytes, allocations) does not depend on the machine.
//
//	workload ──objects──▶ Source ──Apply──▶ index ──Advance──▶ Client
package direct

import (
	"slices"

	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

// Source is a synthetic source: it fills an index under k8swatch's contract.
type Source struct {
	Index   *index.Index
	version index.ResourceVersion
}

// NewSource makes a source and the index that it fills.
func NewSource() (*Source, error) {
	ix, err := index.New(translate.New(translate.Options{}))
	if err != nil {
		return nil, err
	}
	ix.Apply(index.Cause{}, index.SourceID{ID: "benchmrk"})
	return &Source{Index: ix, version: 1000}, nil
}

// batch is how many changes k8swatch puts into one transaction.
const batch = 200

// Load gives the index all objects of a workload: eagerly first, as pages of a
// list come, then one Replace for each kind but those held back.
func (s *Source) Load(w *workload.Workload, heldBack ...index.Kind) {
	listed := map[index.Kind][]*index.Object{}
	var changes []index.Change
	for o := range w.Objects() {
		obj := s.object(o)
		if slices.Contains(heldBack, obj.Kind) {
			continue
		}
		listed[obj.Kind] = append(listed[obj.Kind], obj)
		changes = append(changes, index.Upsert{Object: obj})
		if len(changes) == batch {
			s.Index.Apply(index.Cause{}, changes...)
			changes = nil
		}
	}
	s.Index.Apply(index.Cause{}, changes...)
	for i := range kinds.All {
		if k := kinds.All[i].Kind; !slices.Contains(heldBack, k) {
			s.complete(k, listed[k])
		}
	}
}

// LoadKind gives the objects of one kind, which Load held back.
func (s *Source) LoadKind(w *workload.Workload, k index.Kind) {
	var objects []*index.Object
	for o := range w.Objects() {
		if kindOf(o) == k {
			objects = append(objects, s.object(o))
		}
	}
	s.complete(k, objects)
}

func (s *Source) complete(k index.Kind, objects []*index.Object) {
	s.Index.Apply(index.Cause{},
		index.Replace{Kind: k, Objects: objects, Version: s.version},
		index.KindStatus{Kind: k, State: index.Observed})
}

// Write applies the changes of an edit, each a watch event and a commit of its
// own as they come when nothing else happens, and gives the commits.
func (s *Source) Write(changes []workload.Change) []index.Commit {
	var out []index.Commit
	for _, c := range changes {
		out = append(out, s.Index.Apply(index.Cause{}, s.change(c)))
	}
	return out
}

func (s *Source) change(c workload.Change) index.Change {
	obj := s.object(c.Object)
	if c.Deleted {
		return index.Delete{Key: obj.ObjectKey, Version: obj.Version}
	}
	return index.Upsert{Object: obj, InOrder: true}
}

func kindOf(o fixture.Object) index.Kind {
	return index.Kind(o.GetObjectKind().GroupVersionKind().Kind)
}

// object gives what k8swatch makes of a Kubernetes object.
func (s *Source) object(o fixture.Object) *index.Object {
	s.version++
	o.SetResourceVersion(s.version.String())
	return &index.Object{
		ObjectKey: index.ObjectKey{Kind: kindOf(o), Namespace: o.GetNamespace(), Name: o.GetName()},
		Version:   s.version, Body: o,
	}
}

// Types gives the resource types of the index.
func (s *Source) Types() []index.TypeSpec { return translate.New(translate.Options{}).Types() }
