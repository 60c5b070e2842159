package apiserver

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-xds/holdfast/benchmarks/direct"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/k8swatch"
	"github.com/holdfast-xds/holdfast/kinds"
)

// What holdfast's own watcher makes of the synthetic API server is what the direct
// source gives: lists, watches, a kind that is held, a deletion.
func TestTheWatcherSeesTheWorkload(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, same := workload.New(workload.Smallest, workload.Anywhere()), workload.New(workload.Smallest, workload.Anywhere())
	if err := s.Load(w); err != nil {
		t.Fatal(err)
	}
	s.Hold(kinds.EndpointSlice)
	want, err := direct.NewSource()
	if err != nil {
		t.Fatal(err)
	}
	want.Load(same)
	got, err := direct.NewSource()
	if err != nil {
		t.Fatal(err)
	}
	kube, err := k8swatch.NewKube(&rest.Config{Host: s.Address()}, got.Index, k8swatch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- kube.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	wait(ctx, t, got.Index, "all kinds but one", func(x *index.Snapshot) bool { return completeKinds(x) == len(kinds.All)-1 })
	if row := got.Index.Snapshot().Kind(kinds.EndpointSlice); row.Complete() {
		t.Error("the kind that is held is complete")
	}
	s.Release(kinds.EndpointSlice)
	for _, e := range workload.Edits {
		_, changes := w.Next(e)
		if _, err := s.Write(changes); err != nil {
			t.Fatal(err)
		}
		_, changes = same.Next(e)
		want.Write(changes)
	}
	for i := range kinds.All {
		k := kinds.All[i].Kind
		wait(ctx, t, got.Index, "every "+string(k), func(x *index.Snapshot) bool {
			return x.Kind(k).Complete() && x.Kind(k).Objects == want.Index.Snapshot().Kind(k).Objects
		})
	}
	for _, spec := range want.Types() {
		for r := range want.Index.Snapshot().Resources(spec.URL) {
			wait(ctx, t, got.Index, r.String(), func(x *index.Snapshot) bool {
				now := x.Resource(r.ResourceKey)
				return now != nil && now.Digest == r.Digest
			})
		}
	}
}

func completeKinds(s *index.Snapshot) int {
	n := 0
	for _, k := range s.Kinds() {
		if k.Complete() {
			n++
		}
	}
	return n
}

func wait(ctx context.Context, t *testing.T, ix *index.Index, what string, is func(*index.Snapshot) bool) {
	t.Helper()
	for {
		s := ix.Snapshot()
		if is(s) {
			return
		}
		select {
		case <-ix.Changed(s.Revision()):
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, ctx.Err())
		}
	}
}
