package ads

import (
	"context"
	"log/slog"
	"time"
)

// Release lets go what the removal guard withholds from the clients with the given
// node id, or from all when it is empty. It gives the number of resources.
func (s *Server) Release(node string) int {
	total := 0
	for _, x := range s.open() {
		n := 0
		if x.question(nil, func() { n = x.release(node) }) {
			total += n
		}
	}
	return total
}

// release runs on the loop.
func (x *session) release(node string) int {
	n := x.machine.Guarded()
	if n == 0 || (node != "" && node != x.machine.Node()) {
		return 0
	}
	x.letGo = x.machine.Release(time.Now())
	return n
}

// warnGuarded says once, for each client, that the guard has begun to withhold, and
// once that it has ended.
func (x *session) warnGuarded() {
	now := x.machine.Guarded()
	before := x.guarded
	x.guarded = now
	switch {
	case now > 0 && before == 0:
		x.server.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn,
			"the removal guard withholds removals: they would take too much at once; \"holdfast release\" lets them go, or they go when the hold has passed",
			append(x.attrs(), slog.Int("resources", now), slog.Duration("hold", x.server.opts.Guard.Hold))...)
	case now == 0 && before > 0:
		x.server.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "the removal guard withholds nothing any more", x.attrs()...)
	}
}

// warnWithout says that a new client is given what is known, without waiting any
// longer for kinds that keep failing.
func (x *session) warnWithout() {
	without := x.machine.StartedWithout()
	if len(without) > x.without {
		x.server.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn,
			"a new Envoy is served without what can't be read; hosts that rest on it are missing there until it can",
			append(x.attrs(), slog.Any("kinds", without))...)
	}
	x.without = len(without)
}
