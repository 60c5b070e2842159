package main

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// garbage gives the percentage that is set.
func garbage() int {
	now := debug.SetGCPercent(-1)
	debug.SetGCPercent(now)
	return now
}

// The collector is lazy until every kind is complete and a little longer, and
// then for good frugal.
func TestMemoryIsSavedAfterTheStart(t *testing.T) {
	defer debug.SetGCPercent(garbage())
	synctest.Test(t, func(t *testing.T) {
		ix := indextest.New()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- memory{ix: ix}.run(ctx) }()
		synctest.Wait()
		if got := garbage(); got != garbageAtStart {
			t.Errorf("at the start %d %%", got)
		}
		for _, k := range ix.Snapshot().Kinds() {
			ix.Apply(index.Cause{}, index.Replace{Kind: k.Kind, Version: 1})
		}
		synctest.Wait()
		if got := garbage(); got != garbageAtStart {
			t.Errorf("with the Envoys about to come back %d %%", got)
		}
		time.Sleep(startRest)
		synctest.Wait()
		if got := garbage(); got != percentOf(inUse()) {
			t.Errorf("later %d %%", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Lists that never complete do not make it lazy for ever.
func TestMemoryIsSavedWithoutAStart(t *testing.T) {
	defer debug.SetGCPercent(garbage())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- memory{ix: indextest.New()}.run(ctx) }()
		time.Sleep(startMost)
		synctest.Wait()
		if got := garbage(); got != percentOf(inUse()) {
			t.Errorf("%d %%", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestMemoryIsLeftToThoseWhoSetIt(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (memory{byHand: true}).run(ctx); err != nil || garbage() != 77 {
		t.Errorf("%d %%, %v", garbage(), err)
	}
}

func TestPercentOf(t *testing.T) {
	for inUse, want := range map[uint64]int{0: 3200, 32 << 20: 100, 64 << 20: 50, 160 << 20: 20, 1 << 30: 20} {
		if got := percentOf(inUse); got != want {
			t.Errorf("of %d bytes %d %%, want %d", inUse, got, want)
		}
	}
}
