package simulation

import (
	"time"
)

// flush delivers what is under way: no message takes as long as time is about
// to pass.
func (w *world) flush(r *random) {
	for range 1000 {
		var list []action
		for _, x := range w.replicas {
			for _, c := range x.conns {
				list = c.messages(list)
			}
		}
		if len(list) == 0 || w.violation != nil {
			return
		}
		pick(r, list).do(r)
		w.check()
	}
}

// slow is how long a message may take.
const slow = 2 * time.Second

// wait lets time pass, and what falls due meanwhile happen, in order.
func (w *world) wait(r *random, d time.Duration) {
	w.logWithheld()
	w.logf("%s pass", d)
	end := w.now.Add(d)
	for range 200 {
		next := w.nextTimer()
		if next.IsZero() || next.After(end) {
			next = end
		}
		if next.Sub(w.now) > slow {
			w.flush(r)
			if again := w.nextTimer(); !again.IsZero() && again.Before(next) {
				next = again
			}
		}
		w.now = maxTime(w.now, next)
		w.tick()
		if w.violation != nil || !w.now.Before(end) {
			return
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (w *world) tick() {
	for _, x := range w.replicas {
		for _, c := range x.conns {
			if c.due() {
				c.tick()
			}
		}
	}
	for _, e := range w.envoys {
		e.tick()
	}
	w.check()
}

// nextTimer gives the time of the next timer; zero for none.
func (w *world) nextTimer() time.Time {
	var next time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	for _, x := range w.replicas {
		for _, c := range x.conns {
			sooner(c.stream.Deadline())
		}
	}
	for _, e := range w.envoys {
		sooner(e.deadline())
	}
	return next
}
