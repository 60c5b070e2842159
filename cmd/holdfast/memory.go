package main

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// How much garbage may pile up before it is collected, in percent of what is in
// use. While the first lists come in nearly all that is made stays, and looking
// for garbage took half of a start's CPU. Later a change makes some 30 KB of it:
// collecting early costs a fifth of a millisecond for each change, and saves a
// third of the memory.
const (
	garbageAtStart = 100
	garbageLater   = 20
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
	if !m.byHand {
		debug.SetGCPercent(garbageAtStart)
		m.waitForStart(ctx)
		debug.SetGCPercent(garbageLater)
		debug.FreeOSMemory()
	}
	<-ctx.Done()
	return nil
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
