package ads

import (
	"fmt"
	"strings"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// What is written by hand is what the generated code would write, but for the
// order of fields: for bodies of every size about the limits.
func TestTheWireFormIsTheMessage(t *testing.T) {
	s := indextest.New().Snapshot()
	r := &delta.Response{Type: "example/T", Nonce: "7", Source: s}
	want := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.Type, Nonce: r.Nonce, SystemVersionInfo: s.Version()}
	for i, size := range []int{1, 127, 128, copied - 1, copied, copied + 1, 2 * chunkSize, 3, 3 * chunkSize, 100, 1 << 20} {
		row := &index.Resource{
			ResourceKey: index.ResourceKey{Type: r.Type, Name: fmt.Sprint("name-", i, strings.Repeat("x", i*300))},
			Body:        []byte(strings.Repeat("b", size)), Digest: index.Digest(i),
		}
		r.Send = append(r.Send, row)
		want.Resources = append(want.Resources, &discoveryv3.Resource{
			Name: row.Name, Version: s.Token(row), Resource: &anypb.Any{TypeUrl: r.Type, Value: row.Body},
		})
	}
	w := wireOf(r)
	got := &discoveryv3.DeltaDiscoveryResponse{}
	if err := proto.Unmarshal(w.buffers.Materialize(), got); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Error("the messages differ")
	}
	if w.size != proto.Size(want) {
		t.Errorf("size %d, want %d", w.size, proto.Size(want))
	}
	if !proto.Equal(w, want) {
		t.Error("for another codec the message differs")
	}
}
