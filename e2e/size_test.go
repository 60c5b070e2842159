package e2e

import (
	"testing"
	"time"
)

// The project's limits at 3,407 hosts on two cores.
const (
	limitFirstStart  = 5 * time.Second
	limitHoldfastRSS = 250 << 20
	limitEnvoyRSS    = 400 << 20
	limitEditBytes   = 2 << 10
)

// firstStart checks how long the world's first start took, that all hosts were
// served then, and what it left in memory.
func firstStart(t *testing.T, w *world) {
	f := w.first
	t.Logf("first start to ready: %v; holdfast %d MB (peak %d), Envoy %d MB (peak %d)", f.ready.Round(time.Millisecond),
		f.holdfast.RSS>>20, f.holdfast.Peak>>20, f.envoy.RSS>>20, f.envoy.Peak>>20)
	if f.sample.Failed > 0 || f.sample.Requests == 0 {
		t.Errorf("when Envoy was ready: %v", f.sample)
	}
	if f.ready > limitFirstStart {
		t.Errorf("first start took %v, more than %v", f.ready, limitFirstStart)
	}
	if f.holdfast.RSS > limitHoldfastRSS {
		t.Errorf("holdfast is at %d MB, more than %d MB", f.holdfast.RSS>>20, limitHoldfastRSS>>20)
	}
	if f.envoy.RSS > limitEnvoyRSS {
		t.Errorf("Envoy is at %d MB, more than %d MB", f.envoy.RSS>>20, limitEnvoyRSS>>20)
	}
	w.sweep(t)
	if u, err := w.Envoy.Usage(); err == nil {
		t.Logf("Envoy after a visit to every host: %d MB", u.RSS>>20)
	}
}
