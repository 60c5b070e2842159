package delta_test

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/delta"
)

// A name that is asked for, has no resource and is not held is gone; one that exists
// or is held is not, nor one that nobody asks for.
func TestInventoryKnowsWhatIsGone(t *testing.T) {
	p := guarded(t, 1, true)
	if gone := p.stream.Inventory(delta.Secret).Gone; len(gone) != 0 {
		t.Fatalf("gone at first: %v", gone)
	}
	p.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: delta.Secret, ResourceNamesSubscribe: []string{"never"}})
	gone := p.stream.Inventory(delta.Secret).Gone
	if _, ok := gone["never"]; !ok || len(gone) != 1 {
		t.Errorf("gone: %v, want never alone", gone)
	}
}
