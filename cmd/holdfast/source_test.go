package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-xds/holdfast/index"
)

// history is a source whose current version can be set; it notes what it is asked.
type history struct {
	current index.ResourceVersion
	fails   error
	asked   []string
}

func (h *history) Run(context.Context) error { return nil }

func (h *history) Verify(_ context.Context, kind index.Kind) (index.ResourceVersion, error) {
	h.asked = append(h.asked, "verify "+string(kind))
	return h.current, h.fails
}

func (h *history) Rollback(_ index.Cause, kind index.Kind, held, current index.ResourceVersion) bool {
	h.asked = append(h.asked, fmt.Sprintf("rollback? %s %d>%d", kind, held, current))
	return current < held
}

// Many Envoys report at once; the API server is asked once, with the highest
// version that any of them holds.
func TestRollbackWatchAsksOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{current: 7}
		w := newRollbackWatch(h, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		for _, held := range []index.ResourceVersion{8, 9, 8} {
			w.report("Service", held)
		}
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()
		synctest.Wait()
		if got := strings.Join(h.asked, ", "); got != "verify Service, rollback? Service 9>7" {
			t.Errorf("asked: %s", got)
		}
		h.fails = errors.New("connection refused")
		w.report("Service", 9)
		synctest.Wait()
		if len(h.asked) != 2 {
			t.Errorf("asked again at once: %s", h.asked)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// What cannot be verified is neither lag nor rollback.
func TestRollbackWatchConcludesNothingFromAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{fails: errors.New("connection refused")}
		w := newRollbackWatch(h, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		w.report("Service", 9)
		ended := make(chan error, 1)
		go func() { ended <- w.run(ctx) }()
		synctest.Wait()
		if got := strings.Join(h.asked, ", "); got != "verify Service" {
			t.Errorf("asked: %s", got)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A folder has no versions: nothing to verify, and nothing that blocks.
func TestRollbackWatchOfAFolder(t *testing.T) {
	var w *rollbackWatch
	w.report("Service", 9)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.run(ctx); err != nil {
		t.Error(err)
	}
}
