package ads

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// Options of a server.
type Options struct {
	Logger *slog.Logger // default: discards
	Tracer trace.Tracer // default: none
	// FreshEnvoyWait and RemovalGrace are delta.Options; the defaults are 60 s and 1 s.
	FreshEnvoyWait time.Duration
	RemovalGrace   time.Duration
	// Behind is told, every few seconds, that a kind's frontier stays below what
	// a client holds: the watch lags, or the history was rolled back. It must not
	// block. Nil does nothing.
	Behind func(kind index.Kind, held index.ResourceVersion)
}

// Server is the aggregated discovery service.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	ix   *index.Index
	opts Options

	mu      sync.Mutex
	next    uint64
	streams map[uint64]*session
	running sync.WaitGroup
}

// New makes a server of what the index holds.
func New(ix *index.Index, opts Options) *Server {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Tracer == nil {
		opts.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if opts.FreshEnvoyWait == 0 {
		opts.FreshEnvoyWait = time.Minute
	}
	if opts.RemovalGrace == 0 {
		opts.RemovalGrace = time.Second
	}
	return &Server{ix: ix, opts: opts, streams: map[uint64]*session{}}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, s)
}

// Wait returns when the last goroutine of every stream has ended; the streams
// end with their gRPC server.
func (s *Server) Wait() { s.running.Wait() }

// StreamAggregatedResources refuses state of the world: it has no way to say
// "not known yet", since what is absent from a response is deleted.
func (s *Server) StreamAggregatedResources(discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return status.Error(codes.Unimplemented, "holdfast serves incremental xDS only: set api_type DELTA_GRPC in Envoy's ads_config")
}

// DeltaAggregatedResources runs one client's stream until it ends.
func (s *Server) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	x := s.open(stream)
	defer s.close(x)
	return x.run(stream.Context())
}

// Status tells of every connected client, in the order of connecting.
func (s *Server) Status() []delta.StreamStatus {
	s.mu.Lock()
	open := make([]*session, 0, len(s.streams))
	for _, x := range s.streams {
		open = append(open, x)
	}
	s.mu.Unlock()
	slices.SortFunc(open, func(a, b *session) int { return int(a.id) - int(b.id) })
	out := make([]delta.StreamStatus, 0, len(open))
	for _, x := range open {
		if st, ok := x.status(); ok {
			out = append(out, st)
		}
	}
	return out
}

func (s *Server) open(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	x := &session{
		server: s, id: s.next, stream: stream, peer: peerOf(stream.Context()),
		bytes: map[string]uint64{}, spans: map[string]trace.Span{},
		ask: make(chan chan delta.StreamStatus), done: make(chan struct{}),
	}
	s.streams[x.id] = x
	return x
}

func (s *Server) close(x *session) {
	close(x.done)
	s.ix.Leave(x)
	s.mu.Lock()
	delete(s.streams, x.id)
	s.mu.Unlock()
	for _, span := range x.spans {
		span.End()
	}
	s.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "envoy disconnected", x.attrs()...)
}
