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

// busy is how many processors others may use before a time says nothing: the
// tests of other packages run at the same time.
const busy = 0.3

// firstStart checks how long the world's first start took, that all hosts were
// served then, and what it left in memory.
func firstStart(t *testing.T, w *world) {
	f := w.first
	t.Logf("first start to ready: %v (others used %.1f processors); holdfast %d MB (peak %d), Envoy %d MB (peak %d)", f.ready.Round(time.Millisecond), f.others,
		f.holdfast.RSS>>20, f.holdfast.Peak>>20, f.envoy.RSS>>20, f.envoy.Peak>>20)
	if f.sample.Failed > 0 || f.sample.Requests == 0 {
		t.Errorf("when Envoy was ready: %v", f.sample)
	}
	switch {
	case f.ready <= limitFirstStart:
	case f.others > busy:
		t.Logf("first start took more than %v, but %.1f processors were busy with something else", limitFirstStart, f.others)
	default:
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
