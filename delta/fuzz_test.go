package delta_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// FuzzStream: requests in any order, wrong nonces, unknown types, long lists, NACKs,
// reconnects and changes of the index, in between each other. The machine never
// panics, never has two responses of a type in flight, never sends what the rule
// forbids, never removes without a proof, never breaks before it has made, holds
// what the model holds; and when it is left in peace it ends with what there is.
func FuzzStream(f *testing.F) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		runDrill(t, func(n int) int {
			if len(data) == 0 {
				return 0
			}
			b := int(data[0])
			data = data[1:]
			return b % n
		}, func() bool { return len(data) > 0 })
	})
}

// TestDrills is FuzzStream for many random inputs, in every test run.
func TestDrills(t *testing.T) {
	runs := uint64(300)
	if testing.Short() {
		runs = 100
	}
	for seed := range runs {
		r := rand.New(rand.NewPCG(seed, 2))
		steps := 150
		runDrill(t, r.IntN, func() bool { steps--; return steps > 0 })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func runDrill(t *testing.T, pick func(int) int, more func() bool) {
	t.Helper()
	d := newDrill(pick)
	defer func() {
		if err := recover(); err != nil {
			if text, ours := err.(string); ours {
				t.Error(text)
				return
			}
			panic(err)
		}
	}()
	for more() {
		d.step()
	}
	d.quiet()
}

// check looks at the responses of one step, in their order.
func (d *drill) check(out []*delta.Response) {
	d.ix.Pass(d, d.stream.Revision())
	for _, r := range out {
		d.note("-> %s", responseLines([]*delta.Response{r}))
		t := d.types[r.Type]
		if t == nil {
			d.fail("%s was not asked for", r.Type)
		}
		if t.flying != nil {
			d.fail("two responses of %s in flight", service(r.Type))
		}
		for _, res := range r.Send {
			d.checkSend(t, r, res)
		}
		for _, p := range r.Remove {
			d.checkRemove(t, r, p)
		}
		t.flying = r
		if r.Type == delta.Cluster {
			d.followed(r)
		}
	}
	for _, st := range d.stream.Status().Types {
		if t := d.types[st.Type]; st.Held != len(t.held) {
			d.fail("%s: the machine says that the client holds %d, the model %v", service(st.Type), st.Held, sorted(t.held))
		}
	}
}

// followed: endpoints are sent again behind their cluster.
func (d *drill) followed(r *delta.Response) {
	for _, res := range r.Send {
		if e := d.types[delta.Endpoints]; e != nil {
			e.owed[res.Name] = true
		}
	}
}

func (d *drill) checkSend(t *modelType, r *delta.Response, res *index.Resource) {
	if !t.asks(res.Name) {
		d.fail("%s was not asked for", res)
	}
	var held *index.Token
	if h, ok := t.held[res.Name]; ok {
		held = &h.token
	} else if row, ok := t.maybe[res.Name]; ok {
		token := r.Source.TokenOf(row)
		held = &token
	}
	v := delta.Decide(r.Source, res.ResourceKey, held, nil)
	owed := t.owed[res.Name] || r.Type == delta.Endpoints && d.types[delta.Cluster] != nil
	// What the client holds may be sent once more to end a cluster's wait, even when the
	// newest can't leave or is gone.
	again := v.Action == delta.Nothing || held != nil && held.Digest == res.Digest && r.Type == delta.Endpoints
	if v.Action != delta.Send && !(again && owed) {
		d.fail("%s was sent; the rule says %v, missing %v", res, v.Action, v.Missing)
	}
	if v.Action == delta.Send && r.Type == delta.RouteConfiguration {
		d.checkMade(res, held != nil)
	}
	delete(t.owed, res.Name)
}

// checkMade: make before break. Whoever has a route gets another one only when all
// of its clusters are in service.
func (d *drill) checkMade(routes *index.Resource, held bool) {
	clusters := d.types[delta.Cluster]
	if !held || clusters == nil || d.types[delta.Endpoints] == nil {
		return
	}
	for _, ref := range routes.Refs {
		if _, ok := clusters.held[ref.Name]; !ok && clusters.asks(ref.Name) {
			d.fail("%s was sent before %s was acknowledged", routes, ref)
		}
		if clusters.flying != nil && slices.ContainsFunc(clusters.flying.Remove, func(p index.Proof) bool { return p.Key() == ref }) {
			d.fail("%s was sent while %s is being removed", routes, ref)
		}
	}
}

func (d *drill) checkRemove(t *modelType, r *delta.Response, p index.Proof) {
	name := p.Key().Name
	h, holds := t.held[name]
	if !p.Valid() || p.Key().Type != r.Type || p.Revision() != r.Source.Revision() {
		d.fail("%s is removed with the proof of something else: %v", name, p)
	}
	var held *index.Token
	if holds {
		held = &h.token
	} else if row, ok := t.maybe[name]; ok {
		token := r.Source.TokenOf(row)
		held, holds = &token, true
	} else if !t.names[name] {
		d.fail("%s is removed, which the client neither holds nor asks for", p.Key())
	}
	if v := delta.Decide(r.Source, p.Key(), held, nil); v.Action != delta.Remove {
		d.fail("%s is removed; the rule says %v", p.Key(), v.Action)
	}
	if r.Type == delta.Cluster && holds {
		d.checkUnused(p.Key())
	}
}

// checkUnused: no route that the client is known to hold, or is being sent, uses
// the cluster.
func (d *drill) checkUnused(cluster index.ResourceKey) {
	t := d.types[delta.RouteConfiguration]
	if t == nil {
		return
	}
	uses := func(r *index.Resource) bool {
		for _, ref := range r.Refs {
			if ref == cluster {
				return true
			}
		}
		return false
	}
	for name, h := range t.held {
		if h.row != nil && uses(h.row) {
			d.fail("%s is removed while routes %s use it", cluster, name)
		}
	}
	if t.flying != nil {
		for _, r := range t.flying.Send {
			if uses(r) {
				d.fail("%s is removed while routes %s are on their way", cluster, r.Name)
			}
		}
	}
}

// quiet leaves the stream in peace: every kind is complete and far enough, the
// client answers, asks for what it is told of, and time passes. Then it holds what
// there is.
func (d *drill) quiet() {
	d.note("quiet")
	d.world.Version += 1_000_000
	for _, k := range indextest.Kinds {
		d.ix.Apply(index.Cause{}, indextest.Change(d.world.Relist(k)))
	}
	d.check(d.stream.Advance(d.now, d.ix.Snapshot()))
	for _, url := range drillTypes[:6] {
		if d.types[url] == nil {
			d.first(url, nil, nil)
		}
	}
	for range 100 {
		for _, url := range drillTypes {
			d.answer(url, "")
		}
		d.askForEndpoints()
		d.now = d.now.Add(30 * time.Second)
		d.check(d.stream.Tick(d.now))
		if !d.busy() {
			break
		}
	}
	if d.busy() {
		d.fail("does not come to rest")
	}
	for _, url := range drillTypes {
		if t := d.types[url]; t != nil {
			d.converged(url, t)
		}
	}
}

func (d *drill) busy() bool {
	for _, t := range d.types {
		if t.flying != nil {
			return true
		}
	}
	return !d.stream.Deadline().IsZero()
}

// askForEndpoints of the clusters that the client has: without them its routes wait.
func (d *drill) askForEndpoints() {
	for name := range d.types[delta.Cluster].held {
		if e := d.types[delta.Endpoints]; !e.asks(name) {
			d.subscribeTo(delta.Endpoints, name)
		}
	}
}

func (d *drill) converged(url string, t *modelType) {
	excused := map[string]bool{}
	for _, st := range d.stream.Status().Types {
		for _, q := range st.Quarantined {
			if st.Type == url || st.Type == delta.Cluster || st.Type == delta.Endpoints || st.Type == delta.RouteConfiguration || st.Type == delta.Listener {
				excused[st.Type+q.Resource.Name] = true
			}
		}
	}
	if len(excused) > 0 {
		return // what it rejected is its own; see the scenarios
	}
	s := d.ix.Snapshot()
	for r := range s.Resources(url) {
		h, ok := t.held[r.Name]
		if t.asks(r.Name) && (!ok || h.token.Digest != r.Digest) && !d.clusterNeverAsked(r) {
			d.fail("in the end the client lacks %s %q; holds %+v; withheld: %s", r, r.Body, h, statusLines(d.stream.Status(), d.now))
		}
		if live, ok := t.live[r.Name]; t.asks(r.Name) && (!ok || live != r.Digest) && !d.clusterNeverAsked(r) {
			d.fail("in the end %s is not what the client has in service", r)
		}
	}
	if !d.types[delta.Cluster].wildcard {
		return // a route that waits for ever holds its old clusters
	}
	for name := range t.live {
		if s.Resource(index.ResourceKey{Type: url, Name: name}) == nil {
			d.fail("in the end the client has %s %s in service", service(url), name)
		}
	}
	for name := range t.held {
		if s.Resource(index.ResourceKey{Type: url, Name: name}) == nil {
			d.fail("in the end the client still holds %s %s: %s", service(url), name, statusLines(d.stream.Status(), d.now))
		}
	}
}

// clusterNeverAsked: the client asked for some clusters by name, not for those that
// its routes need: these wait for ever.
func (d *drill) clusterNeverAsked(r *index.Resource) bool {
	if d.types[delta.Cluster].wildcard {
		return false
	}
	return r.Type == delta.RouteConfiguration || r.Type == delta.ScopedRoutes || r.Type == delta.Listener
}
