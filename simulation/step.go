package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// Step is one thing that the scheduler lets happen. Arg seeds the step's own
// choices, so a step means the same kind of thing in whatever state it is taken.
type Step struct {
	Op  Op
	Arg uint64
}

// Op is a kind of step.
type Op uint8

// The kinds of steps.
const (
	Mutate     Op = iota // an object comes, changes or goes
	Run                  // some of what can happen next does
	Settle               // one replica and its streams come to rest
	WatchFault           // a watch drops, a list is cut
	Health               // a kind becomes forbidden, failing, not served, or well again
	Compact              // old events can't be watched any more
	Crash                // a replica dies, or starts
	Connect              // an Envoy connects, or loses its connection
	Reboot               // an Envoy starts anew
	Wait                 // time passes
	Bookmark             // watches are told how far they have come
	Foreign              // an Envoy's versions become those of another cluster
	Flap                 // an object goes and comes back, which one replica sees before another
	ops
)

var opNames = [ops]string{"mutate", "run", "settle", "watchfault", "health", "compact", "crash", "connect", "reboot", "wait", "bookmark", "foreign", "flap"}

func (s Step) String() string { return fmt.Sprintf("%s:%x", opNames[s.Op], s.Arg) }

// Steps makes the steps of a seed. Each seed favours other kinds of steps, so
// that rare combinations become common in some.
func Steps(seed uint64, n int) []Step {
	r := randomOf(seed, 3)
	weights := []int{30, 60, 8, 5, 4, 1, 4, 8, 1, 6, 3, 1, 3}
	for i := range weights {
		weights[i] *= pick(r, []int{0, 1, 1, 2, 4})
	}
	weights[Run] = max(weights[Run], 30)
	weights[Mutate] = max(weights[Mutate], 15)
	steps := make([]Step, n)
	for i := range steps {
		steps[i] = Step{Op: Op(r.weighted(weights)), Arg: r.next() >> 32}
	}
	return steps
}

func (w *world) step(s Step) {
	r := randomOf(s.Arg, uint64(s.Op))
	w.logf("— %s", s)
	switch s.Op {
	case Mutate:
		w.gen.mutate(r)
	case Run:
		for range 1 + r.below(12) {
			if w.violation != nil || !w.progress(r) {
				break
			}
		}
	case Settle:
		w.settle(r)
	case WatchFault:
		w.watchFault(r)
	case Health:
		w.changeHealth(r)
	case Compact:
		w.api.compact = w.api.now - version(r.below(3))
	case Crash:
		w.crash(r)
	case Connect:
		w.toggle(r)
	case Reboot:
		w.reboot(r)
	case Wait:
		w.wait(r, pick(r, []time.Duration{300 * time.Millisecond, 2 * time.Second, 16 * time.Second, 61 * time.Second}))
	case Bookmark:
		w.bookmarks(r)
	case Foreign:
		w.estrange(r)
	case Flap:
		w.flap(r)
	}
	w.check()
}

// settle lets one replica catch up, with its streams.
func (w *world) settle(r *random) { w.settleOne(r, pick(r, w.replicas)) }

func (w *world) settleOne(r *random, x *replica) {
	for range 2000 {
		if !x.alive() || w.violation != nil {
			return
		}
		list := x.actions(nil)
		if len(list) == 0 {
			return
		}
		pick(r, list).do(r)
		w.check()
	}
}

// flap takes an object away and puts it back. One replica and its Envoys see both;
// then an Envoy moves to another replica, which may have seen neither.
func (w *world) flap(r *random) {
	ahead, e := pick(r, w.replicas), pick(r, w.envoys)
	all := w.gen.all()
	if !ahead.alive() || len(all) == 0 {
		return
	}
	w.moveTo(e, ahead)
	w.settleOne(r, ahead)
	o := pick(r, all)
	w.api.remove(o.ObjectKey)
	w.catchUpAll()
	w.settleOne(r, ahead)
	w.wait(r, 2*time.Second)
	w.gen.put(o.Kind, copyBody(o))
	w.catchUpAll()
	w.settleOne(r, ahead)
	if to := pick(r, w.replicas); to.alive() && w.violation == nil {
		w.moveTo(e, to)
	}
}

func (w *world) catchUpAll() {
	for i := range w.api.replicas {
		w.api.replicas[i] = w.api.now
	}
}

func (w *world) moveTo(e *envoy, x *replica) {
	if e.conn != nil {
		e.conn.replica.close(e.conn)
	}
	w.nextConn++
	w.logf("%s connects to %s", e.name, x.name)
	x.open(w.nextConn, e)
}

func (w *world) watchFault(r *random) {
	x := pick(r, w.replicas)
	if !x.alive() || !x.identified {
		return
	}
	wa := pick(r, x.watches)
	w.logf("%s: watch of %s breaks", x.name, wa.kind)
	x.apply(wa.drop(w.now))
	if r.oneIn(2) {
		x.apply(wa.step(r, w.now))
	}
}

func (w *world) changeHealth(r *random) {
	k := pick(r, allKinds)
	var to health
	if w.api.health[k] == served {
		to = pick(r, []health{forbidden, failing, unserved})
		if to == unserved && kinds.Find(k).Required {
			to = forbidden
		}
	}
	w.setHealth(k, to)
	for _, x := range w.replicas {
		if !x.alive() || !x.identified || r.oneIn(3) {
			continue
		}
		for _, wa := range x.watches {
			if wa.kind == k {
				x.apply(wa.drop(w.now))
				x.apply(wa.step(r, w.now))
			}
		}
	}
}

func (w *world) setHealth(k index.Kind, to health) {
	w.logf("API server: %s is %s", k, [...]string{"served", "forbidden", "failing", "unserved"}[to])
	if to == unserved {
		w.api.unserve(k)
	}
	w.api.health[k] = to
}

func (w *world) crash(r *random) {
	x := pick(r, w.replicas)
	if x.alive() {
		w.logf("%s crashes", x.name)
		x.crash()
		if r.oneIn(2) {
			return
		}
	}
	w.logf("%s starts", x.name)
	x.start()
}

func (w *world) toggle(r *random) {
	e := pick(r, w.envoys)
	if e.conn != nil {
		w.logf("%s loses its connection", e.name)
		e.conn.replica.close(e.conn)
		if r.oneIn(3) {
			return
		}
	}
	w.connect(r, e)
}

func (w *world) reboot(r *random) {
	i := r.below(len(w.envoys))
	e := w.envoys[i]
	w.logf("%s starts anew", e.name)
	if e.conn != nil {
		e.conn.replica.close(e.conn)
	}
	w.envoys[i] = newEnvoy(e.name, r.next(), w.clock)
	w.served[i] = nil
	w.connect(r, w.envoys[i])
}

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

// estrange: an Envoy comes from another cluster with the same objects, as after a
// move or a restore. Its versions say nothing that could be understood here, and
// what it holds is at best of the oldest view that anybody here has.
func (w *world) estrange(r *random) {
	e := pick(r, w.envoys)
	if e.conn != nil {
		e.conn.replica.close(e.conn)
	}
	w.logf("%s comes from another cluster", e.name)
	e.estrange(w.oldestView())
	w.served[w.indexOf(e)] = e.inService().facts(w.gen.hosts)
	w.connect(r, e)
}

func (w *world) indexOf(e *envoy) int { return slices.Index(w.envoys, e) }

// oldestView is the version up to which every replica has seen every kind that
// it has seen at all.
func (w *world) oldestView() version {
	oldest := w.api.now
	for _, x := range w.replicas {
		for _, wa := range x.watches {
			if wa.seen {
				oldest = min(oldest, wa.at)
			}
		}
	}
	return oldest
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

// bookmarks tell the watches of a replica that are up to date how far they are.
func (w *world) bookmarks(r *random) {
	x := pick(r, w.replicas)
	if !x.alive() || !x.identified {
		return
	}
	for _, wa := range x.watches {
		if wa.phase == watching && !wa.busy() && w.api.health[wa.kind] == served {
			x.apply(wa.step(r, w.now))
		}
	}
}

// noSteps is the trace of a world that breaks without any.
const noSteps = "none"

// Trace writes steps in the form that ParseTrace reads.
func Trace(steps []Step) string {
	if len(steps) == 0 {
		return noSteps
	}
	words := make([]string, len(steps))
	for i, s := range steps {
		words[i] = s.String()
	}
	return strings.Join(words, " ")
}

// ParseTrace reads steps.
func ParseTrace(s string) ([]Step, error) {
	if s == noSteps {
		return nil, nil
	}
	var out []Step
	for _, word := range strings.Fields(s) {
		name, arg, _ := strings.Cut(word, ":")
		step := Step{Op: ops}
		for i, n := range opNames {
			if n == name {
				step.Op = Op(i)
			}
		}
		if _, err := fmt.Sscanf(arg, "%x", &step.Arg); err != nil || step.Op == ops {
			return nil, fmt.Errorf("step %q: want name:hex", word)
		}
		out = append(out, step)
	}
	return out, nil
}
