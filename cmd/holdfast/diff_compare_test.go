package main

import (
	"slices"
	"testing"

	"github.com/holdfast-xds/holdfast/admin"
)

// What an Envoy has beyond what it holds by its ACKs is a difference, unless it still
// asks for it though it is gone: then it drains.
func TestExtraOrDraining(t *testing.T) {
	h := &admin.TypeHoldings{Type: "x/Secret", Held: map[string]string{"a": "h1.1.s."}, Unsettled: []string{"moving"}, Gone: []string{"draining", "asked-for-alone"}}
	d := compareType(h, reported{"a": "h1.1.s.", "moving": "h1.2.s.", "draining": "h1.3.s.", "extra": "h1.4.s."})
	if d.Same != 1 || d.OnTheWay != 1 || !slices.Equal(d.Draining, []string{"draining"}) || !slices.Equal(d.Extra, []string{"extra"}) || len(d.Missing) > 0 {
		t.Errorf("%+v", d)
	}
	if all := (&difference{Types: []typeDifference{d}}); all.count() != 1 {
		t.Errorf("%d differences, want 1: what drains is none", all.count())
	}
}
