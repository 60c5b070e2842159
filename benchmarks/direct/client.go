package direct

import (
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// Sent adds up what a client was sent.
type Sent struct {
	Responses, Resources, Removed, Bytes int
}

// Client is an Envoy without a network: it acknowledges everything at once and
// asks for what the resources refer to.
type Client struct {
	Sent Sent
	// Held versions, by type and name.
	Held map[index.ResourceKey]string

	index  *index.Index
	stream *delta.Stream
	now    time.Time
	asked  map[index.ResourceKey]int
}

// NewClient gives a client that holds nothing.
func NewClient() *Client {
	return &Client{Held: map[index.ResourceKey]string{}, asked: map[index.ResourceKey]int{}, now: time.Unix(1_700_000_000, 0)}
}

// settle is longer than every grace of the stream machine.
const settle = 2 * time.Second

// Connect opens a stream to an index, with initial_resource_versions of what is
// held, and lets the graces of the beginning pass. The client becomes a reader of
// the index.
func (c *Client) Connect(ix *index.Index) {
	c.index = ix
	ix.Pass(c, 0)
	c.stream = delta.NewStream(ix.Snapshot(), c.now, delta.Options{RemovalGrace: time.Second})
	for _, req := range c.firstRequests() {
		c.take(c.stream.Request(c.now, req))
	}
	c.Pass(settle)
}

// firstRequests: a client that holds nothing asks by name for what the answers
// refer to, later.
func (c *Client) firstRequests() []*discoveryv3.DeltaDiscoveryRequest {
	var out []*discoveryv3.DeltaDiscoveryRequest
	for _, url := range []string{delta.Cluster, delta.Endpoints, delta.Listener, delta.ScopedRoutes, delta.RouteConfiguration, delta.Secret} {
		req := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, InitialResourceVersions: map[string]string{}}
		for k, version := range c.Held {
			if k.Type == url {
				req.InitialResourceVersions[k.Name] = version
			}
		}
		for k := range c.asked {
			if k.Type == url {
				req.ResourceNamesSubscribe = append(req.ResourceNamesSubscribe, k.Name)
			}
		}
		byName := url == delta.Endpoints || url == delta.RouteConfiguration || url == delta.Secret
		if !byName || len(req.GetResourceNamesSubscribe()) > 0 {
			out = append(out, req)
		}
	}
	return out
}

// Advance takes the newest snapshot.
func (c *Client) Advance() {
	c.take(c.stream.Advance(c.now, c.index.Snapshot()))
	c.index.Pass(c, c.stream.Revision())
}

// Pass lets time pass, so that graces end.
func (c *Client) Pass(d time.Duration) {
	c.now = c.now.Add(d)
	c.take(c.stream.Tick(c.now))
}

// Status of the machine.
func (c *Client) Status() delta.StreamStatus { return c.stream.Status() }

// take answers responses until there are no more.
func (c *Client) take(responses []*delta.Response) {
	for len(responses) > 0 {
		r := responses[0]
		responses = append(responses[1:], c.answer(r)...)
	}
}

func (c *Client) answer(r *delta.Response) []*delta.Response {
	c.count(r)
	wanted := map[string][]string{}
	for _, res := range r.Send {
		_, known := c.Held[res.ResourceKey]
		c.Held[res.ResourceKey] = r.Source.Token(res)
		if known && res.Type != delta.Listener {
			continue // refers to the same as before; listeners grow
		}
		for _, ref := range res.Refs {
			c.ask(ref, wanted)
		}
	}
	for _, p := range r.Remove {
		delete(c.Held, p.Key())
	}
	out := c.stream.Request(c.now, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.Type, ResponseNonce: r.Nonce})
	for _, url := range []string{delta.Endpoints, delta.RouteConfiguration, delta.Secret} {
		if len(wanted[url]) > 0 {
			out = append(out, c.stream.Request(c.now, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: wanted[url]})...)
		}
	}
	return out
}

// ask subscribes to what Envoy asks for by name.
func (c *Client) ask(ref index.ResourceKey, wanted map[string][]string) {
	switch ref.Type {
	case delta.Endpoints, delta.RouteConfiguration, delta.Secret:
		c.asked[ref]++
		if c.asked[ref] == 1 {
			wanted[ref.Type] = append(wanted[ref.Type], ref.Name)
		}
	}
}

func (c *Client) count(r *delta.Response) {
	m := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.Type, Nonce: r.Nonce, SystemVersionInfo: r.Source.Version()}
	for _, res := range r.Send {
		m.Resources = append(m.Resources, &discoveryv3.Resource{
			Name: res.Name, Version: r.Source.Token(res), Resource: &anypb.Any{TypeUrl: res.Type, Value: res.Body},
		})
	}
	for _, p := range r.Remove {
		m.RemovedResources = append(m.RemovedResources, p.Key().Name)
	}
	c.Sent.Responses++
	c.Sent.Resources += len(r.Send)
	c.Sent.Removed += len(r.Remove)
	c.Sent.Bytes += proto.Size(m)
}
