package ads_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/delta/ads"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// patience bounds every wait in these tests; none of them waits for it to pass.
const patience = 20 * time.Second

// world is a server on loopback over the toy ingress.
type world struct {
	t    *testing.T
	ix   *index.Index
	ads  *ads.Server
	grpc *grpc.Server
	addr string
	ctx  context.Context
}

func start(t *testing.T) *world {
	t.Helper()
	return startWith(t, ads.Options{})
}

func startWith(t *testing.T, o ads.Options) *world {
	t.Helper()
	o.RemovalGrace = time.Millisecond
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	w := &world{t: t, ix: indextest.New(), grpc: grpc.NewServer(), ctx: ctx}
	var err error
	if w.ads, err = ads.New(w.ix, o); err != nil {
		t.Fatal(err)
	}
	w.ads.Register(w.grpc)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- w.grpc.Serve(l) }()
	t.Cleanup(func() {
		cancel()
		w.grpc.Stop()
		w.ads.Wait()
		if err := <-served; err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, before)
	})
	w.apply("list host @10; a svc=web @5", "list path @10", "list svc @10; web @6", "list slice @10; w of=web addr=1 @7", "list cert @10")
	return w
}

func (w *world) apply(lines ...string) {
	w.ix.Apply(index.Cause{}, indextest.Changes(strings.Join(lines, "\n"))...)
}

// client is one connection with one stream.
type client struct {
	t      *testing.T
	conn   *grpc.ClientConn
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	cancel context.CancelFunc
}

func (w *world) connect(t *testing.T) *client {
	t.Helper()
	conn, err := grpc.NewClient(w.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: conn, stream: stream, cancel: cancel}
	t.Cleanup(c.close)
	return c
}

func (c *client) close() {
	c.cancel()
	c.conn.Close()
}

func (c *client) send(req *discoveryv3.DeltaDiscoveryRequest) {
	c.t.Helper()
	if err := c.stream.Send(req); err != nil {
		c.t.Fatal(err)
	}
}

// next acknowledges the next response and gives it as text.
func (c *client) next() string {
	c.t.Helper()
	r, err := c.stream.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce})
	var out []string
	for _, res := range r.Resources {
		if res.Resource.GetTypeUrl() != r.TypeUrl || !strings.HasPrefix(res.Version, "h1.") {
			c.t.Fatalf("resource %v of %s", res, r.TypeUrl)
		}
		out = append(out, fmt.Sprintf("%s=%q", res.Name, res.Resource.Value))
	}
	for _, name := range r.RemovedResources {
		out = append(out, "-"+name)
	}
	return strings.Join(out, " ")
}

func (c *client) expect(want string) {
	c.t.Helper()
	if got := c.next(); got != want {
		c.t.Fatalf("got %s, want %s", got, want)
	}
}

// ended gives the code with which the server ended the stream.
func (c *client) ended() error {
	for {
		if _, err := c.stream.Recv(); err != nil {
			return err
		}
	}
}

func request(url string, names ...string) *discoveryv3.DeltaDiscoveryRequest {
	return &discoveryv3.DeltaDiscoveryRequest{TypeUrl: url, ResourceNamesSubscribe: names, Node: &corev3.Node{Id: "envoy-1"}}
}

// One stream from its first request to its end: a change, a removal, status.
func TestStream(t *testing.T) {
	w := start(t)
	c := w.connect(t)
	c.send(request(delta.Cluster))
	c.expect(`web="web port="`)
	w.apply("svc web port=81 @11")
	c.expect(`web="web port=81"`)

	st := w.ads.Status()
	if len(st) != 1 || st[0].Node != "envoy-1" || st[0].Peer == "" || st[0].Types[0].Bytes == 0 {
		t.Fatalf("status %+v", st)
	}

	// It holds no listener, so nothing is waited for but the grace.
	c.send(request(delta.Listener, "nothing"))
	c.expect("-nothing")
	w.apply("delete host a @12")
	c.expect("-web")

	if err := c.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := c.ended(); !errors.Is(err, io.EOF) {
		t.Fatalf("a stream that the client closes ends with %v", err)
	}
}

// What a client brings along comes to the machine: nothing is sent again.
func TestReconnect(t *testing.T) {
	w := start(t)
	c := w.connect(t)
	c.send(request(delta.Cluster))
	r, err := c.stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	c.close()

	c = w.connect(t)
	req := request(delta.Cluster)
	req.InitialResourceVersions = map[string]string{"web": r.Resources[0].Version}
	c.send(req)
	w.apply("host b svc=api @11", "svc api @12", "slice x of=api addr=2 @13")
	c.expect(`api="api port="`)
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		send func(*client)
		code codes.Code
		text string
	}{
		"no type": {
			func(c *client) { c.send(request("")) },
			codes.InvalidArgument, "type_url",
		},
		"too many types": {
			func(c *client) {
				for i := range 33 {
					c.send(request(fmt.Sprintf("type.example/T%d", i)))
				}
			},
			codes.ResourceExhausted, "more than 32 resource types",
		},
	}
	w := start(t)
	for name, x := range cases {
		t.Run(name, func(t *testing.T) {
			c := w.connect(t)
			x.send(c)
			if err := c.ended(); status.Code(err) != x.code || !strings.Contains(err.Error(), x.text) {
				t.Fatalf("ended with %v", err)
			}
		})
	}
}

func TestStateOfTheWorldIsRefused(t *testing.T) {
	w := start(t)
	c := w.connect(t)
	sotw, err := discoveryv3.NewAggregatedDiscoveryServiceClient(c.conn).StreamAggregatedResources(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = sotw.Recv(); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "DELTA_GRPC") {
		t.Fatalf("refused with %v", err)
	}
}

// big is a body beyond every flow-control window.
var big = strings.Repeat("x", 1<<20)

// A client that does not read holds up nobody: not the others, not status, and what
// waits for it does not grow with what changes.
func TestClientThatDoesNotRead(t *testing.T) {
	w := start(t)
	w.apply("svc web port=" + big + " @11")
	stuck := w.connect(t)
	stuck.send(request(delta.Cluster))
	stuck.send(request(delta.Endpoints, "web"))
	reader := w.connect(t)
	reader.send(request(delta.Endpoints, "web"))
	reader.expect(`web="1"`)
	for i := range 50 {
		w.apply(fmt.Sprintf("svc web port=%d%s @%d", i, big, 20+i), fmt.Sprintf("slice w of=web addr=%d @%d", 100+i, 20+i))
		reader.expect(fmt.Sprintf("web=%q", fmt.Sprint(100+i)))
	}
	st := w.ads.Status()
	i := slices.IndexFunc(st, func(s delta.StreamStatus) bool { return len(s.Types) == 2 })
	if len(st) != 2 || i < 0 {
		t.Fatalf("status %+v", st)
	}
	for _, typ := range st[i].Types {
		if typ.Responses > 1 || typ.InFlight != 1 {
			t.Fatalf("%s: %d responses", typ.Type, typ.Responses)
		}
	}
	// When it reads at last, it gets the newest of each behind what was on its way.
	for range 2 {
		stuck.next()
	}
	for range 2 {
		if got := stuck.next(); got != `web="149"` && !strings.Contains(got, "port=49x") {
			t.Fatalf("got %.40s", got)
		}
	}
}

// A client that acknowledges by guessing nonces what it has not read can't fill our
// memory, or hold up status.
func TestClientThatAcknowledgesUnread(t *testing.T) {
	w := start(t)
	w.apply("svc web port=" + big + " @11")
	c := w.connect(t)
	c.send(request(delta.Cluster))
	for i := range 200 {
		req := request(delta.Cluster, "web") // a name that is asked for again is answered
		req.ResponseNonce = fmt.Sprint(i)
		if err := c.stream.Send(req); err != nil {
			break // ended by the server
		}
		if i%50 == 0 {
			w.ads.Status()
		}
	}
	err := c.ended()
	if status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("ended with %v", err)
	}
}

// Many streams come and go, in every way, while the index changes. Nothing of them
// stays behind: see also the check for leaks in start.
func TestStreamsComeAndGo(t *testing.T) {
	w := start(t)
	stop := make(chan struct{})
	var changing sync.WaitGroup
	changing.Add(1)
	go func() {
		defer changing.Done()
		for v := 100; ; v += 4 {
			select {
			case <-stop:
				return
			default:
				w.apply(fmt.Sprintf("svc web port=%d @%d", v, v), fmt.Sprintf("host h%d svc=web @%d", v%7, v+1), fmt.Sprintf("delete host h%d @%d", (v+3)%7, v+2))
			}
		}
	}()
	var clients sync.WaitGroup
	for i := range 40 {
		clients.Add(1)
		go func() {
			defer clients.Done()
			w.comeAndGo(t, i)
		}()
	}
	clients.Wait()
	close(stop)
	changing.Wait()
	w.gone()
}

func (w *world) comeAndGo(t *testing.T, i int) {
	conn, err := grpc.NewClient(w.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	for range 5 {
		ctx, cancel := context.WithCancel(w.ctx)
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
		if err != nil {
			t.Error(err)
			cancel()
			return
		}
		for n, url := range []string{delta.Cluster, delta.Listener, delta.ScopedRoutes, delta.Endpoints}[:1+i%4] {
			if err := stream.Send(request(url)); err != nil || n > i%3 {
				break
			}
		}
		for range i % 5 {
			r, err := stream.Recv()
			if err != nil {
				t.Error(err)
				break
			}
			if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce}); err != nil {
				break
			}
		}
		if i%2 == 0 {
			_ = stream.CloseSend() // the other way to go
		}
		cancel()
	}
}

// gone waits until no stream is left, and sees that the index keeps nothing for them.
func (w *world) gone() {
	w.t.Helper()
	for w.ads.Streams() > 0 {
		if w.ctx.Err() != nil {
			w.t.Fatal("streams are left")
		}
	}
	w.apply("delete host a @1000000")
	w.apply("bookmark host @1000001")
	for g := range w.ix.Snapshot().Tombstones(delta.RouteConfiguration) {
		w.t.Errorf("tombstone %s is kept for a reader that is gone", g.Last)
	}
}

// The server stops while streams are open, busy and stuck.
func TestStopWithOpenStreams(t *testing.T) {
	w := start(t)
	w.apply("svc web port=" + big + " @11")
	for range 5 {
		w.connect(t).send(request(delta.Cluster))
	}
	idle := w.connect(t)
	idle.send(request(delta.Secret, "nothing"))
	idle.next()
	w.grpc.Stop()
	w.ads.Wait()
	if got := len(w.ads.Status()); got != 0 {
		t.Fatalf("%d streams", got)
	}
}
