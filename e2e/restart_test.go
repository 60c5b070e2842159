package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// restarts: with nothing changed no request fails, Envoy loses nothing, and
// holdfast sends nothing.
func restarts(t *testing.T, w *world) {
	t.Run("SIGKILL", func(t *testing.T) { restart(t, w, w.Holdfast.Kill) })
	t.Run("SIGTERM", func(t *testing.T) { restart(t, w, stopInTime(w)) })
}

// stopInTime: serve answers SIGTERM within a second.
func stopInTime(w *world) func() error {
	return func() error {
		began := time.Now()
		if err := w.Holdfast.Stop(); err != nil {
			return err
		}
		if took := time.Since(began); took > time.Second {
			return fmt.Errorf("SIGTERM took %v", took)
		}
		return nil
	}
}

// restart ends holdfast in the given way under load and starts it again.
func restart(t *testing.T, w *world, end func() error) {
	w.settle(t)
	before := w.moment(t)
	traffic := w.background(t)
	answered(t, traffic, 200)
	if err := end(); err != nil {
		t.Fatal(err)
	}
	answered(t, traffic, 200) // while nobody is there
	began := time.Now()
	if err := w.Holdfast.Start(); err != nil {
		t.Fatal(err)
	}
	s := w.settle(t)
	t.Logf("settled %v after the start", time.Since(began).Round(time.Millisecond))
	answered(t, traffic, 200)
	unharmed(t, traffic)
	if err := w.moment(t).Check(before); err != nil {
		t.Error(err)
	}
	if sent := s.Sent(); sent.Resources+sent.Removed > 0 {
		t.Errorf("after the reconnect %d resources and %d removals were sent (%d bytes), want none", sent.Resources, sent.Removed, sent.Bytes)
	}
}

// answered waits for more answers.
func answered(t *testing.T, r *load.Run, more int64) {
	t.Helper()
	target := r.Report().Requests + more
	if err := proc.Until(t.Context(), "answers", patience, func(context.Context) error {
		if n := r.Report().Requests; n < target {
			return fmt.Errorf("%d of %d", n, target)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// within waits until a watch's latest outcome is the given one.
func within(ctx context.Context, w *load.Watch, outcome string, limit time.Duration) error {
	return proc.Until(ctx, "outcome "+outcome, limit, func(context.Context) error {
		if now := w.Now(); now != outcome {
			return fmt.Errorf("it is %q", now)
		}
		return nil
	})
}
