package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// How much garbage may pile up before it is collected, in percent of what is in
// use. While the first lists come in nearly all that is made stays, and looking
// for garbage took half of a start's CPU. Later a change makes some 30 KB of it,
// so that little need pile up: what does is memory that nobody uses.
const (
	garbageAtStart = 100
	garbageLater   = 20
	// garbageLeast is always allowed, in bytes: in a small heap a thousand Envoys'
	// goroutines are looked through at each collection, whatever there is to find.
	garbageLeast = 32 << 20
)

// memory sets the garbage collector by what holdfast is doing. A person who has
// set GOGC or GOMEMLIMIT knows better.
type memory struct {
	ix *index.Index
	// byHand: leave it alone.
	byHand bool
}

// startMost bounds the start of a holdfast whose lists never complete, startRest
// is the time for the Envoys that come back meanwhile.
const (
	startMost = time.Minute
	startRest = 2 * time.Second
)

func (m memory) run(ctx context.Context) error {
	if m.byHand {
		<-ctx.Done()
		return nil
	}
	debug.SetGCPercent(garbageAtStart)
	m.waitForStart(ctx)
	debug.SetGCPercent(garbageLater)
	debug.FreeOSMemory()
	again := time.NewTicker(memoryLook)
	defer again.Stop()
	for {
		debug.SetGCPercent(percentOf(inUse()))
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// memoryLook is how often the percentage is fitted to what is in use.
const memoryLook = 10 * time.Second

// percentOf gives the percentage for so many bytes in use.
func percentOf(inUse uint64) int {
	return max(garbageLater, int(garbageLeast*100/max(inUse, 1<<20))) //nolint:gosec // at most 3200
}

// inUse gives the bytes that the last collection found in use.
func inUse() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func (m memory) waitForStart(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startMost)
	defer cancel()
	for s := m.ix.Snapshot(); !complete(s); s = m.ix.Snapshot() {
		select {
		case <-m.ix.Changed(s.Revision()):
		case <-ctx.Done():
			return
		}
	}
	select {
	case <-time.After(startRest):
	case <-ctx.Done():
	}
}

func complete(s *index.Snapshot) bool {
	for _, k := range s.Kinds() {
		if !k.Complete() {
			return false
		}
	}
	return true
}
