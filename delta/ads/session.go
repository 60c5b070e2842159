package ads

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// maxTypes bounds the types of one stream, and with them what can wait to be sent.
const maxTypes = 32

// stuckAfter is how long something may be withheld for a frontier that is behind
// before Options.Behind is told, and how often.
const stuckAfter = 5 * time.Second

// session is one stream. All fields below "owned by the loop" are touched by
// run's goroutine alone.
type session struct {
	server *Server
	id     uint64
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer
	peer   string
	ask    chan func() // questions for the loop
	done   chan struct{}
	last   atomic.Pointer[delta.StreamStatus] // as last told; never nil
	rests  atomic.Int64                       // until when last is recent enough, in Unix nanoseconds

	// Owned by the loop.
	machine *delta.Stream
	types   map[string]struct{}
	named   bool
	bytes   map[string]uint64 // sent, by type
	without int               // kinds that it was started without, after the last step
	guarded int               // what the removal guard withheld after the last step
	// letGo are the responses of a question that let something go.
	letGo []*delta.Response

	// For traces and metrics; see trace.go.
	connection trace.Span
	flights    map[string]*flight                 // by nonce
	withholds  map[trace.SpanID]trace.SpanContext // the newest withhold span, by the span id of its cause
}

// run is the loop that owns the machine.
func (x *session) run(ctx context.Context) error {
	ix := x.server.ix
	ix.Pass(x, 0)
	opts := x.server.opts
	x.connecting()
	x.machine = delta.NewStream(ix.Snapshot(), time.Now(), delta.Options{
		FreshEnvoyWait: opts.FreshEnvoyWait, RemovalGrace: opts.RemovalGrace, Guard: opts.Guard,
		Cause: x.connection.SpanContext(), Events: true,
	})
	x.types = map[string]struct{}{}

	requests := make(chan *discoveryv3.DeltaDiscoveryRequest)
	ended := make(chan error, 2)
	outbox := make(chan *wire, maxTypes)
	x.start(func() { ended <- x.receive(requests) })
	x.start(func() { ended <- x.send(outbox) })
	defer close(outbox)

	stuck := time.NewTicker(stuckAfter)
	defer stuck.Stop()
	for {
		ix.Pass(x, x.machine.Revision())
		timer := time.NewTimer(x.untilDeadline())
		var out []*delta.Response
		var answer *discoveryv3.DeltaDiscoveryRequest
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case err := <-ended:
			timer.Stop()
			if errors.Is(err, io.EOF) {
				return nil // the client has closed the stream
			}
			return err
		case req := <-requests:
			if err := x.admit(req); err != nil {
				timer.Stop()
				return err
			}
			out, answer = x.machine.Request(time.Now(), req), req
		case <-ix.Changed(x.machine.Revision()):
			out = x.machine.Advance(time.Now(), ix.Snapshot())
		case <-timer.C:
			out = x.machine.Tick(time.Now())
		case question := <-x.ask:
			question()
			out, x.letGo = x.letGo, nil
		case <-stuck.C:
			x.reportStuck()
		}
		timer.Stop()
		events := x.machine.Events()
		x.answered(answer, events)
		for _, r := range out {
			select {
			case outbox <- x.message(r):
			default: // each type has one response in flight: this one reads none
				return status.Error(codes.ResourceExhausted, "responses are acknowledged that were not read")
			}
		}
		x.tell(events)
		x.warnGuarded()
		x.warnWithout()
	}
}

// start runs f in a goroutine that Server.Wait waits for. A receiver or sender
// ends when the stream's context does, which is when the handler has returned.
func (x *session) start(f func()) {
	x.server.running.Add(1)
	go func() {
		defer x.server.running.Done()
		f()
	}()
}

func (x *session) receive(requests chan<- *discoveryv3.DeltaDiscoveryRequest) error {
	for {
		req, err := x.stream.Recv()
		if err != nil {
			return err
		}
		select {
		case requests <- req:
		case <-x.done:
			return nil
		}
	}
}

func (x *session) send(outbox <-chan *wire) error {
	for m := range outbox {
		if err := x.stream.SendMsg(m); err != nil {
			return err
		}
	}
	return nil
}

const never = 24 * time.Hour

func (x *session) untilDeadline() time.Duration {
	d := x.machine.Deadline()
	if d.IsZero() {
		return never
	}
	return max(time.Until(d), time.Millisecond)
}

// admit looks at a request before the machine does: who it is from, and whether
// it answers a response.
func (x *session) admit(req *discoveryv3.DeltaDiscoveryRequest) error {
	if req.GetTypeUrl() == "" {
		return status.Error(codes.InvalidArgument, "a DeltaDiscoveryRequest on an aggregated stream needs a type_url")
	}
	if _, again := x.types[req.GetTypeUrl()]; !again && req.GetTypeUrl() == delta.Secret {
		x.witness(req)
	}
	if d := req.GetErrorDetail(); d != nil {
		d.Message = withoutKeys(d.Message)
	}
	x.types[req.GetTypeUrl()] = struct{}{}
	if len(x.types) > maxTypes {
		return status.Errorf(codes.ResourceExhausted, "more than %d resource types on one stream", maxTypes)
	}
	if !x.named {
		x.named = true
		x.last.Store(&delta.StreamStatus{ID: x.id, Peer: x.peer, Node: req.GetNode().GetId(), Connected: time.Now()})
		x.connected(req)
	}
	return nil
}

// witness tells the index of Secrets that the client brings along and the index
// does not have: they may be broken by now, and stay in service as they are.
func (x *session) witness(req *discoveryv3.DeltaDiscoveryRequest) {
	snap := x.server.ix.Snapshot()
	var seen []index.Change
	for name := range req.GetInitialResourceVersions() {
		k := index.ResourceKey{Type: req.GetTypeUrl(), Name: name}
		if snap.Resource(k) == nil {
			seen = append(seen, index.Witness{Resource: k})
		}
	}
	if len(seen) > 0 {
		x.server.ix.Apply(index.Cause{}, seen...)
	}
}

// message makes the wire form of a response.
func (x *session) message(r *delta.Response) *wire {
	m := wireOf(r)
	x.bytes[r.Type] += uint64(m.size) //nolint:gosec // not negative
	x.server.meters.sent(r, m.size)
	x.flights[r.Nonce] = &flight{r.Type, r.Oldest, x.traced(r, m.size)}
	return m
}

func (x *session) reportStuck() {
	behind := x.server.opts.Behind
	if behind == nil {
		return
	}
	for kind, held := range x.machine.Stuck(stuckAfter) {
		behind(kind, held)
	}
}

func (x *session) attrs() []slog.Attr {
	node := ""
	if x.machine != nil {
		node = x.machine.Node()
	}
	return []slog.Attr{slog.Uint64("stream", x.id), slog.String("node", node), slog.String("peer", x.peer)}
}

func peerOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}
