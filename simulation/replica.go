package simulation

import (
	"fmt"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// replica is one holdfast: the real index and streams, filled by model watches.
// Its fields below "alive" are of its present life and go with a crash.
type replica struct {
	name  string
	world *world

	// Alive.
	ix         *index.Index // nil while it is down
	identified bool
	watches    []*watch
	conns      []*conn
	// views tells from which state of the API server each revision was made.
	views map[index.Revision][]seenAt
}

// seenAt is where a kind's watch had come to.
type seenAt struct {
	version version
	seen    bool
}

// conn is an ADS stream between an Envoy and a replica, with what is under way.
type conn struct {
	id       int
	envoy    *envoy
	replica  *replica
	stream   *delta.Stream
	toServer []*discoveryv3.DeltaDiscoveryRequest
	toEnvoy  []*response
	named    map[string]struct{} // types that were asked for
	// had is what the Envoy said that it holds, until something else is known.
	had map[index.ResourceKey]index.Digest
}

// response is a DeltaDiscoveryResponse with its resources parsed.
type response struct {
	url, nonce string
	resources  []*held
	removed    []string
	// apart: the replica had seen a reference that is newer than what it had seen of
	// the kind that is referred to.
	apart bool
}

var streamOptions = delta.Options{FreshEnvoyWait: time.Minute, RemovalGrace: time.Second}

func (r *replica) alive() bool { return r.ix != nil }

// start begins a new life with an empty index.
func (r *replica) start() {
	ix, err := index.New(r.world.rules)
	if err != nil {
		panic(err)
	}
	r.ix, r.identified, r.watches, r.conns = ix, false, nil, nil
	r.views = map[index.Revision][]seenAt{}
	for i, k := range allKinds {
		r.watches = append(r.watches, newWatch(r.world.api, k, i%len(r.world.api.replicas)))
	}
	r.record()
}

// crash ends a life; streams break.
func (r *replica) crash() {
	for _, c := range r.conns {
		c.envoy.disconnect()
	}
	r.ix, r.conns, r.watches, r.views = nil, nil, nil, nil
}

// identify tells the index where its objects come from; nothing is listed before.
func (r *replica) identify() {
	r.identified = true
	r.apply([]index.Change{index.SourceID{ID: sourceID}})
}

const sourceID = "5eed"

func (r *replica) apply(changes []index.Change) {
	if len(changes) == 0 {
		return
	}
	r.ix.Apply(index.Cause{}, changes...)
	r.record()
}

func (r *replica) record() {
	seen := make([]seenAt, len(r.watches))
	for i, w := range r.watches {
		seen[i] = seenAt{w.at, w.seen}
	}
	r.views[r.ix.Snapshot().Revision()] = seen
}

// view gives the version of the API server's state from which a resource was
// made at a revision: in each kind, the maker saw the state as of then or later.
// newest is the newest version that it had seen of any kind.
func (r *replica) view(s *index.Snapshot, x *index.Resource) (view, newest version) {
	seen := r.views[s.Revision()]
	view = r.world.api.now
	for _, b := range x.Provenance {
		for i, k := range allKinds {
			if k == b.Kind && seen[i].seen {
				view = min(view, r.world.api.unchangedUntil(k, seen[i].version))
				newest = max(newest, seen[i].version)
			}
		}
	}
	for _, b := range x.Provenance {
		if row := s.Kind(b.Kind); row.Complete() && !row.Frontier.Observed {
			// Discovery says that the kind is not served, which has no version: a
			// replica that still sees the kind can't tell that it is behind.
			view = 0
		}
	}
	return view, newest
}

// apart: what refers to others was seen at a version that what is referred to was
// not yet seen at.
func (r *replica) apart(s *index.Snapshot) bool {
	seen := r.views[s.Revision()]
	var referring version
	referred := r.world.api.now
	for i, k := range allKinds {
		switch {
		case !seen[i].seen:
		case k == kinds.HTTPProxy, k == kinds.Ingress:
			referring = max(referring, seen[i].version)
		default:
			referred = min(referred, r.world.api.unchangedUntil(k, seen[i].version))
		}
	}
	return referring > referred
}

// held is a resource as it leaves for the Envoy. One that the Envoy has is of the
// view that it was of before.
func (c *conn) held(s *index.Snapshot, row *index.Resource) *held {
	r := c.replica
	view, newest := r.view(s, row)
	x := &held{
		key: row.ResourceKey, token: s.Token(row), digest: row.Digest, parsed: r.world.parser.parse(row),
		view: view, newest: newest,
		excused: len(s.Incomplete(row.Needs(index.NeedMissing))) > 0,
		partial: partial(s, row),
	}
	if old := c.envoy.endpoints[row.Name]; old != nil && row.Type == delta.Endpoints && old.digest == x.digest {
		x.view, x.newest = old.view, old.newest
	}
	return x
}

// partial: it could be more if all kinds were complete. Clusters and endpoints may
// come like that at any time; what comes later only when a kind keeps failing.
func partial(s *index.Snapshot, row *index.Resource) bool {
	for _, l := range s.Incomplete(row.Needs(index.NeedMissing | index.NeedStrict | index.NeedMonotone)) {
		eager := row.Type == delta.Cluster || row.Type == delta.Endpoints
		if state := s.Kind(l.Kind).State; eager || state == index.Failing || state == index.Forbidden {
			return true
		}
	}
	return false
}

// complete: the index has seen the whole of every kind.
func (r *replica) complete() bool {
	for _, row := range r.ix.Snapshot().Kinds() {
		if !row.Complete() {
			return false
		}
	}
	return true
}

func (r *replica) open(id int, e *envoy) {
	c := &conn{id: id, envoy: e, replica: r, named: map[string]struct{}{}, had: e.declared()}
	r.ix.Pass(c, 0)
	c.stream = delta.NewStream(r.ix.Snapshot(), r.world.now, streamOptions)
	r.ix.Pass(c, c.stream.Revision())
	r.conns = append(r.conns, c)
	e.connect(c)
}

func (r *replica) close(c *conn) {
	r.ix.Leave(c)
	for i := range r.conns {
		if r.conns[i] == c {
			r.conns = append(r.conns[:i:i], r.conns[i+1:]...)
			break
		}
	}
	c.envoy.disconnect()
}

// serve takes one request from the queue.
func (c *conn) serve() {
	req := c.toServer[0]
	c.toServer = c.toServer[1:]
	c.replica.world.logf("%s ← %s %s", c.replica.name, c.envoy.name, describe(req))
	if _, again := c.named[req.GetTypeUrl()]; !again && req.GetTypeUrl() == delta.Secret {
		c.witness(req)
	}
	c.named[req.GetTypeUrl()] = struct{}{}
	c.emit(c.stream.Request(c.replica.world.now, req))
}

// witness does what package ads does with the first request for Secrets.
func (c *conn) witness(req *discoveryv3.DeltaDiscoveryRequest) {
	var seen []index.Change
	for _, name := range sorted(req.GetInitialResourceVersions()) {
		k := index.ResourceKey{Type: req.GetTypeUrl(), Name: name}
		if c.replica.ix.Snapshot().Resource(k) == nil {
			seen = append(seen, index.Witness{Resource: k})
		}
	}
	c.replica.apply(seen)
}

func (c *conn) behind() bool { return c.stream.Revision() < c.replica.ix.Snapshot().Revision() }

func (c *conn) advance() { c.emit(c.stream.Advance(c.replica.world.now, c.replica.ix.Snapshot())) }

func (c *conn) due() bool {
	d := c.stream.Deadline()
	return !d.IsZero() && !c.replica.world.now.Before(d)
}

func (c *conn) tick() { c.emit(c.stream.Tick(c.replica.world.now)) }

// emit puts responses into the queue to the Envoy.
func (c *conn) emit(out []*delta.Response) {
	r := c.replica
	r.ix.Pass(c, c.stream.Revision())
	for _, x := range out {
		m := &response{url: x.Type, nonce: x.Nonce, apart: r.apart(x.Source)}
		for _, row := range x.Send {
			m.resources = append(m.resources, c.held(x.Source, row))
			c.sentAgain(row)
		}
		for _, p := range x.Remove {
			m.removed = append(m.removed, p.Key().Name)
			delete(c.had, p.Key())
		}
		r.world.logf("%s → %s %s", r.name, c.envoy.name, m)
		c.toEnvoy = append(c.toEnvoy, m)
	}
}

// sentAgain: a client that has come back is not sent what it said it holds,
// except endpoints behind their cluster.
func (c *conn) sentAgain(row *index.Resource) {
	if had, ok := c.had[row.ResourceKey]; ok && had == row.Digest {
		c.replica.world.fail("resent", "%s → %s: %s again, unchanged", c.replica.name, c.envoy.name, row.ResourceKey)
	}
	delete(c.had, row.ResourceKey)
	for _, ref := range row.Refs {
		if ref.Type == delta.Endpoints {
			delete(c.had, ref)
		}
	}
}

// idle: nothing is under way in either direction and the stream has seen all.
func (c *conn) idle() bool {
	return len(c.toServer) == 0 && len(c.toEnvoy) == 0 && !c.behind() && !c.due()
}

// deliver hands the next response to the Envoy.
func (c *conn) deliver() {
	m := c.toEnvoy[0]
	c.toEnvoy = c.toEnvoy[1:]
	c.envoy.apart = m.apart
	c.envoy.receive(m)
}

func describe(req *discoveryv3.DeltaDiscoveryRequest) string {
	s := short(req.GetTypeUrl())
	if n := req.GetResponseNonce(); n != "" {
		s += " ACK #" + n
	}
	if e := req.GetErrorDetail(); e != nil {
		s += " NACK: " + e.GetMessage()
	}
	if names := req.GetResourceNamesSubscribe(); len(names) > 0 {
		s += fmt.Sprintf(" sub %v", names)
	}
	if names := req.GetResourceNamesUnsubscribe(); len(names) > 0 {
		s += fmt.Sprintf(" unsub %v", names)
	}
	for _, name := range sorted(req.GetInitialResourceVersions()) {
		s += " " + name + "=" + req.GetInitialResourceVersions()[name]
	}
	return s
}

func (m *response) String() string {
	s := short(m.url) + " #" + m.nonce
	for _, x := range m.resources {
		s += fmt.Sprintf(" +%s@%x(view %d)", x.key.Name, uint64(x.digest)>>48, x.view)
	}
	for _, name := range m.removed {
		s += " -" + name
	}
	return s
}
