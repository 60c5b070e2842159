package simulation

import (
	"fmt"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// world is everything: one API server, some holdfast replicas, some Envoys.
type world struct {
	seed   uint64
	now    time.Time
	rules  index.Rules
	parser *parser

	api      *apiServer
	gen      *generator
	truth    *truth
	replicas []*replica
	envoys   []*envoy
	served   []map[fact]version // by Envoy: what it served after the last action
	nextConn int
	// actionCount spreads what is too dear to check after each action.
	actionCount int

	violation *Violation
	log       func(string)
}

// Violation is a broken promise.
type Violation struct {
	Rule   string // which promise
	Detail string
	Step   int // index into the steps; len(steps) for the time after them
}

func (v *Violation) String() string { return v.Rule + ": " + v.Detail }

func (w *world) fail(rule, format string, args ...any) {
	if w.violation == nil {
		w.violation = &Violation{Rule: rule, Detail: fmt.Sprintf(format, args...)}
		w.logf("VIOLATION %s", w.violation)
		w.logWithheld()
	}
}

func (w *world) logf(format string, args ...any) {
	if w.log != nil {
		w.log(fmt.Sprintf(format, args...))
	}
}

// newWorld makes the world of a seed, with its first objects.
func newWorld(seed uint64, rules index.Rules, p *parser, log func(string)) *world {
	r := randomOf(seed, 1)
	w := &world{seed: seed, now: epoch, rules: rules, parser: p, log: log}
	w.api = newAPIServer(2)
	w.gen = newGenerator(w.api, r)
	w.gen.populate(r)
	w.truth = newTruth(w)
	w.api.changed = w.truth.follow
	for i := range w.api.replicas {
		w.api.replicas[i] = w.api.now
	}
	for i := range 2 + r.below(2) {
		x := &replica{name: fmt.Sprintf("replica%d", i), world: w}
		x.start()
		w.replicas = append(w.replicas, x)
	}
	for i := range 1 + r.below(3) {
		w.envoys = append(w.envoys, newEnvoy(fmt.Sprintf("envoy%d", i), randomOf(seed, 2, uint64(i)).next(), w.clock))
		w.served = append(w.served, nil)
	}
	if r.percent(60) {
		w.settleDown(r)
	}
	return w
}

func (w *world) clock() time.Time { return w.now }

// settleDown begins with a world at rest, in which Envoys hold everything.
func (w *world) settleDown(r *random) {
	for _, e := range w.envoys {
		w.connect(r, e)
	}
	w.drain(r)
}

// action is something that can happen next of itself.
type action struct {
	name string
	do   func(*random)
}

// actions lists what can happen next.
func (w *world) actions(out []action) []action {
	for i, v := range w.api.replicas {
		if v < w.api.now {
			out = append(out, action{"catch up", func(r *random) { w.catchUp(r, i) }})
		}
	}
	for _, x := range w.replicas {
		if !x.alive() {
			continue
		}
		out = x.actions(out)
	}
	return out
}

func (r *replica) actions(out []action) []action {
	w := r.world
	if !r.identified {
		return append(out, action{"identify", func(*random) { r.identify() }})
	}
	for _, wa := range r.watches {
		if wa.busy() && w.api.health[wa.kind] == served {
			out = append(out, action{"watch", func(pick *random) { r.apply(wa.step(pick, w.now)) }})
		}
	}
	for _, c := range r.conns {
		out = c.messages(out)
		if c.behind() {
			out = append(out, action{"advance", func(*random) { c.advance() }})
		}
		if c.due() {
			out = append(out, action{"tick", func(*random) { c.tick() }})
		}
	}
	return out
}

// messages lists the deliveries that can happen next on a connection.
func (c *conn) messages(out []action) []action {
	if len(c.toServer) > 0 {
		out = append(out, action{"serve", func(*random) { c.serve() }})
	}
	if len(c.toEnvoy) > 0 {
		out = append(out, action{"deliver", func(*random) { c.deliver() }})
	}
	return out
}

func (w *world) catchUp(r *random, i int) {
	v := &w.api.replicas[i]
	*v += version(1 + r.below(int(w.api.now-*v)))
}

// progress does one of the things that can happen next, at random, and reports
// whether there was one.
func (w *world) progress(r *random) bool {
	list := w.actions(nil)
	if len(list) == 0 {
		return false
	}
	pick(r, list).do(r)
	w.check()
	return true
}

// drain lets happen what can, until nothing is left. A world that never comes to
// rest is a fault.
func (w *world) drain(r *random) {
	const patience = 20000
	for range patience {
		if w.violation != nil || !w.progress(r) {
			return
		}
	}
	w.fail("livelock", "the world does not come to rest")
}

func (w *world) connect(r *random, e *envoy) {
	var up []*replica
	for _, x := range w.replicas {
		if x.alive() {
			up = append(up, x)
		}
	}
	if len(up) == 0 || e.conn != nil {
		return
	}
	w.moveTo(e, pick(r, up))
}

func short(url string) string { return index.ResourceKey{Type: url}.String() }

var typeURLs = []string{delta.Cluster, delta.Endpoints, delta.Listener, delta.Secret, delta.ScopedRoutes, delta.RouteConfiguration}
