package delta_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// The types by the names of their services.
var urls = map[string]string{
	"CDS": delta.Cluster, "EDS": delta.Endpoints, "LDS": delta.Listener,
	"SDS": delta.Secret, "SRDS": delta.ScopedRoutes, "RDS": delta.RouteConfiguration,
}

func service(url string) string {
	for name, u := range urls {
		if u == url {
			return name
		}
	}
	return url
}

// client is a model of an xDS client on one stream: it keeps what it was told and
// tells it again when it reconnects.
type client struct {
	ix     *index.Index
	stream *delta.Stream
	opts   delta.Options
	now    time.Time
	// holds by type URL and name: the resource and its version.
	holds map[string]map[string]version
	// asks for these names, by type URL.
	asks map[string]map[string]bool
	// flying has each type's response that was not answered yet.
	flying map[string]*delta.Response
}

type version struct{ token, body string }

func newClient(ix *index.Index) *client {
	c := &client{
		ix: ix, now: indextest.Start, holds: map[string]map[string]version{},
		opts: delta.Options{FreshEnvoyWait: time.Minute, RemovalGrace: time.Second},
	}
	c.connect(ix)
	return c
}

// connect opens a new stream, perhaps to another replica.
func (c *client) connect(ix *index.Index) {
	c.ix.Leave(c)
	c.ix = ix
	ix.Pass(c, 0)
	c.stream = delta.NewStream(ix.Snapshot(), c.now, c.opts)
	c.flying, c.asks = map[string]*delta.Response{}, map[string]map[string]bool{}
}

func (c *client) request(req *discoveryv3.DeltaDiscoveryRequest) []*delta.Response {
	if c.asks[req.GetTypeUrl()] == nil {
		c.asks[req.GetTypeUrl()] = map[string]bool{}
		if len(c.asks) == 1 {
			req.Node = &corev3.Node{Id: "envoy-1"}
		}
	}
	for _, n := range req.GetResourceNamesSubscribe() {
		c.asks[req.GetTypeUrl()][n] = true
	}
	for _, n := range req.GetResourceNamesUnsubscribe() {
		delete(c.asks[req.GetTypeUrl()], n)
		delete(c.holds[req.GetTypeUrl()], n)
	}
	return c.took(c.stream.Request(c.now, req))
}

func (c *client) advance() []*delta.Response { return c.took(c.stream.Advance(c.now, c.ix.Snapshot())) }

func (c *client) tick(d time.Duration) []*delta.Response {
	c.now = c.now.Add(d)
	return c.took(c.stream.Tick(c.now))
}

func (c *client) took(out []*delta.Response) []*delta.Response {
	c.ix.Pass(c, c.stream.Revision())
	for _, r := range out {
		if c.flying[r.Type] != nil {
			panic("two responses of one type in flight: " + r.Type)
		}
		c.flying[r.Type] = r
	}
	return out
}

// ack takes what is in flight, and asks for what Envoy would ask for by then.
func (c *client) ack(url string) []*delta.Response {
	r := c.flying[url]
	delete(c.flying, url)
	if c.holds[url] == nil {
		c.holds[url] = map[string]version{}
	}
	for _, res := range r.Send {
		c.holds[url][res.Name] = version{r.Source.Token(res), string(res.Body)}
	}
	for _, p := range r.Remove {
		delete(c.holds[url], p.Key().Name)
	}
	return c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResponseNonce: r.Nonce})
}

func (c *client) nack(url, message string) []*delta.Response {
	r := c.flying[url]
	delete(c.flying, url)
	return c.request(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: url, ResponseNonce: r.Nonce, ErrorDetail: &statuspb.Status{Code: 13, Message: message},
	})
}

// references that make Envoy ask for resources by name.
var follows = map[string]string{delta.Cluster: delta.Endpoints, delta.ScopedRoutes: delta.RouteConfiguration, delta.Listener: delta.Secret}

// subscribe asks for what the client's resources refer to and no longer for what
// they don't, as Envoy does.
func (c *client) subscribe() []*delta.Response {
	var out []*delta.Response
	for _, from := range []string{delta.Cluster, delta.Listener, delta.ScopedRoutes} {
		to, want := follows[from], map[string]bool{}
		for name := range c.holds[from] {
			if r := c.lookup(from, name); r != nil {
				for _, ref := range r.Refs {
					if ref.Type == to {
						want[ref.Name] = true
					}
				}
			}
		}
		req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: to}
		for name := range want {
			if !c.asks[to][name] {
				req.ResourceNamesSubscribe = append(req.ResourceNamesSubscribe, name)
			}
		}
		for name := range c.asks[to] {
			if !want[name] {
				req.ResourceNamesUnsubscribe = append(req.ResourceNamesUnsubscribe, name)
			}
		}
		slices.Sort(req.ResourceNamesSubscribe)
		slices.Sort(req.ResourceNamesUnsubscribe)
		if len(req.ResourceNamesSubscribe)+len(req.ResourceNamesUnsubscribe) > 0 {
			out = append(out, c.request(req)...)
		}
	}
	return out
}

// lookup gives the index's row for what the client holds; good enough where only
// references matter.
func (c *client) lookup(url, name string) *index.Resource {
	s, k := c.ix.Snapshot(), index.ResourceKey{Type: url, Name: name}
	if r := s.Resource(k); r != nil {
		return r
	}
	if g := s.Tombstone(k); g != nil {
		return g.Last
	}
	return nil
}

// versions are what a reconnecting client says that it holds of a type.
func (c *client) versions(url string) map[string]string {
	out := map[string]string{}
	for name, v := range c.holds[url] {
		out[name] = v.token
	}
	return out
}

func responseLines(out []*delta.Response) string {
	var b strings.Builder
	for _, r := range out {
		fmt.Fprintf(&b, "%s", service(r.Type))
		for _, res := range r.Send {
			fmt.Fprintf(&b, " %s=%q", res.Name, res.Body)
		}
		for _, p := range r.Remove {
			fmt.Fprintf(&b, " -%s", p.Key().Name)
		}
		if len(r.Send)+len(r.Remove) == 0 {
			b.WriteString(" (empty)")
		}
		b.WriteByte('\n')
	}
	return b.String()
}
