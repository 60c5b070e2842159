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
		if got := garbage(); got != garbageLater {
			t.Errorf("later %d %%", got)
		}
		cancel()
		<-done
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
		if got := garbage(); got != garbageLater {
			t.Errorf("%d %%", got)
		}
		cancel()
		<-done
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
