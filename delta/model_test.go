package delta_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// drill drives one stream with whatever comes, and checks it against a slow and
// obvious model of what the client holds. It fails by panicking with what is wrong.
type drill struct {
	pick  func(n int) int
	world *indextest.History
	ix    *index.Index

	stream *delta.Stream
	now    time.Time
	types  map[string]*modelType
	log    []string
}

// modelType is what the model knows of one type on the current stream.
type modelType struct {
	wildcard bool
	names    map[string]bool
	held     map[string]modelHeld
	// live is what the client really has in service. What it rejects it may apply in
	// part, and it doesn't say which.
	live map[string]index.Digest
	// maybe has the newest of what it rejected in company.
	maybe  map[string]*index.Resource
	flying *delta.Response
	// owed names must or may be answered though they seem unchanged: they were asked
	// for again, were in a rejected response, or go behind their cluster.
	owed map[string]bool
}

type modelHeld struct {
	version string
	token   index.Token
	row     *index.Resource
}

func newDrill(pick func(n int) int) *drill {
	d := &drill{pick: pick, world: indextest.NewHistory(pick), ix: indextest.New(), now: indextest.Start}
	d.connect(nil)
	if pick(4) > 0 {
		d.boot()
	}
	return d
}

// boot begins as an Envoy does: most of what there is to find comes after that.
func (d *drill) boot() {
	for range 12 {
		d.change()
	}
	for _, k := range indextest.Kinds {
		d.ix.Apply(index.Cause{}, indextest.Change(d.world.Relist(k)))
	}
	d.check(d.stream.Advance(d.now, d.ix.Snapshot()))
	for _, url := range drillTypes[:6] {
		names := map[string][]string{
			delta.Endpoints: {"s0", "s1", "s2"}, delta.RouteConfiguration: {"f0", "f1", "f2"}, delta.Secret: {"c0", "c1"},
		}[url]
		d.ask(url, names, nil)
	}
	for range 6 {
		for _, url := range drillTypes {
			d.answer(url, "")
		}
		d.now = d.now.Add(time.Second)
		d.check(d.stream.Tick(d.now))
	}
}

// connect opens a stream; held is what the client brings along.
func (d *drill) connect(held map[string]map[string]modelHeld) {
	d.ix.Leave(d)
	d.ix.Pass(d, 0)
	d.stream = delta.NewStream(d.ix.Snapshot(), d.now, delta.Options{RemovalGrace: time.Second})
	d.types = map[string]*modelType{}
	for _, url := range drillTypes {
		if h := held[url]; h != nil {
			d.first(url, nil, h)
		}
	}
}

var drillTypes = []string{delta.Cluster, delta.Endpoints, delta.Listener, delta.Secret, delta.ScopedRoutes, delta.RouteConfiguration, "type.example/Unknown"}

// step does one thing.
func (d *drill) step() {
	url := drillTypes[d.pick(len(drillTypes))]
	switch d.pick(16) {
	case 0, 1, 2:
		d.change()
	case 3, 4, 5, 14, 15:
		d.answer(url, "")
	case 6:
		d.answer(url, "rejected: "+d.name(url))
	case 7:
		d.now = d.now.Add([]time.Duration{time.Millisecond, time.Second, time.Minute}[d.pick(3)])
		d.note("tick to %s", d.now.Sub(indextest.Start))
		d.check(d.stream.Tick(d.now))
	case 8:
		d.reconnect(d.pick(3) == 0)
	case 9:
		d.stale(url)
	default:
		d.subscribe(url)
	}
}

func (d *drill) name(url string) string {
	names := map[string][]string{
		delta.Cluster: {"s0", "s1", "s2"}, delta.Endpoints: {"s0", "s1", "s2"}, delta.Listener: {"http", "https"},
		delta.Secret: {"c0", "c1"}, delta.ScopedRoutes: {"f0", "f1", "f2"}, delta.RouteConfiguration: {"f0", "f1", "f2"},
	}[url]
	if len(names) == 0 || d.pick(10) == 0 {
		return "nowhere"
	}
	return names[d.pick(len(names))]
}

func (d *drill) names(url string) []string {
	switch d.pick(8) {
	case 0:
		var many []string
		for i := range 200 {
			many = append(many, fmt.Sprintf("n%d", i))
		}
		return many
	case 1:
		return []string{"*"}
	}
	var out []string
	for range d.pick(4) {
		out = append(out, d.name(url))
	}
	return out
}

func (d *drill) change() {
	var lines []string
	for range 1 + d.pick(3) {
		lines = append(lines, d.world.Step())
	}
	d.note("%s", strings.Join(lines, "\n"))
	d.ix.Apply(index.Cause{}, indextest.Changes(strings.Join(lines, "\n"))...)
	if d.pick(3) > 0 { // else the stream hears of it later
		d.check(d.stream.Advance(d.now, d.ix.Snapshot()))
	}
}

func (d *drill) subscribe(url string) {
	t := d.types[url]
	if t == nil {
		d.first(url, d.names(url), nil)
		return
	}
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: d.names(url)}
	if d.pick(2) == 0 {
		req.ResourceNamesUnsubscribe = d.names(url)
	}
	d.request(t, req)
}

// first asks for a type for the first time on the stream.
func (d *drill) first(url string, names []string, held map[string]modelHeld) {
	for _, name := range sorted(held) {
		if d.pick(4) > 0 {
			names = append(names, name)
		}
	}
	legacy := url == delta.Cluster || url == delta.Listener || url == delta.ScopedRoutes
	if legacy && d.pick(2) == 0 {
		names = nil
	}
	d.ask(url, names, held)
}

// ask is first with these very names.
func (d *drill) ask(url string, names []string, held map[string]modelHeld) {
	t := &modelType{names: map[string]bool{}, held: map[string]modelHeld{}, live: map[string]index.Digest{}, maybe: map[string]*index.Resource{}, owed: map[string]bool{}}
	d.types[url] = t
	slices.Sort(names)
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, InitialResourceVersions: map[string]string{}}
	legacy := url == delta.Cluster || url == delta.Listener || url == delta.ScopedRoutes
	t.wildcard = legacy && len(names) == 0
	for _, n := range names {
		t.wildcard = t.wildcard || n == "*"
		t.names[n] = n != "*"
	}
	for name, h := range held {
		req.InitialResourceVersions[name] = h.version
		if t.wildcard || t.names[name] {
			t.held[name] = h
			t.live[name] = h.token.Digest
		}
	}
	req.ResourceNamesSubscribe = names
	d.note("first %s %v holding %v", service(url), names, sorted(held))
	d.check(d.stream.Request(d.now, req))
}

func (d *drill) request(t *modelType, req *discoveryv3.DeltaDiscoveryRequest) {
	for _, n := range req.GetResourceNamesUnsubscribe() {
		switch {
		case n == "*":
			t.wildcard = false
			for name := range t.held {
				if !t.names[name] {
					delete(t.held, name)
				}
			}
			for name := range t.live {
				if !t.names[name] {
					delete(t.live, name)
				}
			}
			for name := range t.maybe {
				if !t.names[name] {
					delete(t.maybe, name)
				}
			}
		case t.wildcard:
			delete(t.names, n)
			t.owed[n] = true
		default:
			delete(t.names, n)
			delete(t.held, n)
			delete(t.live, n)
			delete(t.maybe, n)
			delete(t.owed, n)
		}
	}
	for _, n := range req.GetResourceNamesSubscribe() {
		t.wildcard = t.wildcard || n == "*"
		if n != "*" {
			t.names[n], t.owed[n] = true, true
		}
	}
	d.note("%s ask %v drop %v nonce %q error %q", service(req.GetTypeUrl()), req.GetResourceNamesSubscribe(), req.GetResourceNamesUnsubscribe(), req.GetResponseNonce(), req.GetErrorDetail().GetMessage())
	d.check(d.stream.Request(d.now, req))
}

// stale answers a response that is not in flight.
func (d *drill) stale(url string) {
	if t := d.types[url]; t != nil {
		req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResponseNonce: fmt.Sprint("0", d.pick(9))}
		if d.pick(2) == 0 {
			req.ErrorDetail = &statuspb.Status{Message: "stale"}
		}
		d.request(t, req)
	}
}

// answer acknowledges what is in flight, or rejects it.
func (d *drill) answer(url, rejection string) {
	t := d.types[url]
	if t == nil || t.flying == nil {
		return
	}
	r := t.flying
	t.flying = nil
	req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResponseNonce: r.Nonce}
	if rejection != "" {
		req.ErrorDetail = &statuspb.Status{Code: 13, Message: rejection}
		d.reject(t, r)
	} else {
		t.accept(r)
	}
	d.request(t, req)
}

func (t *modelType) accept(r *delta.Response) {
	for _, res := range r.Send {
		delete(t.maybe, res.Name)
		if t.asks(res.Name) {
			t.held[res.Name] = modelHeld{version: r.Source.Token(res), token: r.Source.TokenOf(res), row: res}
			t.live[res.Name] = res.Digest
		}
	}
	for _, p := range r.Remove {
		delete(t.held, p.Key().Name)
		delete(t.live, p.Key().Name)
		delete(t.maybe, p.Key().Name)
	}
}

// reject applies some of a response all the same; one that stands alone never.
func (d *drill) reject(t *modelType, r *delta.Response) {
	alone := len(r.Send)+len(r.Remove) == 1
	for _, res := range r.Send {
		t.owed[res.Name] = true
		if alone || !t.asks(res.Name) {
			continue
		}
		t.maybe[res.Name] = res
		if d.pick(2) == 0 {
			t.live[res.Name] = res.Digest
		}
	}
	for _, p := range r.Remove {
		t.owed[p.Key().Name] = true
		if !alone && d.pick(2) == 0 {
			delete(t.live, p.Key().Name)
		}
	}
}

func (t *modelType) asks(name string) bool { return t.wildcard || t.names[name] }

// reconnect takes along what the client holds, of some types, perhaps to a control
// plane that has just started or whose source has another id.
func (d *drill) reconnect(restart bool) {
	held := map[string]map[string]modelHeld{}
	for _, url := range drillTypes {
		if t := d.types[url]; t != nil && d.pick(4) > 0 {
			held[url] = map[string]modelHeld{}
			for _, name := range sorted(t.held) {
				h := t.held[name]
				if d.pick(10) == 0 {
					h = modelHeld{version: "garbage"}
				}
				held[url][name] = h
			}
		}
	}
	// What a client has live but does not tell of is lost to us (and measured so of
	// Envoy); a stream begins with what it tells.
	d.note("reconnect, restart %v", restart)
	if restart {
		d.ix.Leave(d)
		d.ix = indextest.New()
		d.world.Observed = map[index.Kind]bool{}
		d.ix.Apply(index.Cause{}, indextest.Changes(d.world.AtOnce())...)
	}
	s := d.ix.Snapshot()
	for _, of := range held {
		for name, h := range of {
			h.token, h.row = s.ParseToken(h.version), nil
			of[name] = h
		}
	}
	d.connect(held)
}

func (d *drill) note(format string, args ...any) { d.log = append(d.log, fmt.Sprintf(format, args...)) }

func (d *drill) fail(format string, args ...any) {
	panic(fmt.Sprintf(format, args...) + "\nafter:\n" + strings.Join(d.log, "\n"))
}

func sorted[V any](m map[string]V) []string {
	out := []string{}
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (d *drill) subscribeTo(url, name string) {
	d.request(d.types[url], &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: []string{name}})
}
