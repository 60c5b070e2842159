package simulation

import (
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

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
