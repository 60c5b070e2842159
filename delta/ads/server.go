package ads

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// Options of a server.
type Options struct {
	Logger *slog.Logger // default: discards
	Tracer trace.Tracer // default: none
	Meter  metric.Meter // default: none
	// Arrivals tell when changes came, to measure how long they took.
	Arrivals *tracing.Arrivals
	// FreshEnvoyWait and RemovalGrace are delta.Options; the defaults are 60 s and 1 s.
	FreshEnvoyWait time.Duration
	RemovalGrace   time.Duration
	// Guard is delta.Options.Guard: the zero value is off.
	Guard delta.Guard
	// Behind is told, every few seconds, that a kind's frontier stays below what
	// a client holds: the watch lags, or the history was rolled back. It must not
	// block. Nil does nothing.
	Behind func(kind index.Kind, held index.ResourceVersion)
}

// Server is the aggregated discovery service.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	ix     *index.Index
	opts   Options
	meters *meters

	mu       sync.Mutex
	next     uint64
	streams  map[uint64]*session
	departed []delta.Departed // oldest first
	running  sync.WaitGroup
}

// New makes a server of what the index holds.
func New(ix *index.Index, opts Options) (*Server, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Tracer == nil {
		opts.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if opts.Meter == nil {
		opts.Meter = metricnoop.NewMeterProvider().Meter("")
	}
	if opts.FreshEnvoyWait == 0 {
		opts.FreshEnvoyWait = time.Minute
	}
	if opts.RemovalGrace == 0 {
		opts.RemovalGrace = time.Second
	}
	m, err := newMeters(opts.Meter)
	if err != nil {
		return nil, fmt.Errorf("metrics of the streams: %w", err)
	}
	return &Server{ix: ix, opts: opts, meters: m, streams: map[uint64]*session{}}, nil
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
	x := s.connect(stream)
	defer s.close(x)
	return x.run(stream.Context())
}

func (s *Server) connect(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	x := &session{
		server: s, id: s.next, stream: stream, peer: peerOf(stream.Context()),
		bytes: map[string]uint64{}, flights: map[string]*flight{}, withholds: map[trace.SpanID]trace.SpanContext{},
		ask: make(chan func()), done: make(chan struct{}),
	}
	x.last.Store(&delta.StreamStatus{ID: x.id, Peer: x.peer, Connected: time.Now()})
	s.streams[x.id] = x
	return x
}

func (s *Server) close(x *session) {
	close(x.done)
	s.ix.Leave(x)
	s.mu.Lock()
	delete(s.streams, x.id)
	s.depart(x)
	s.mu.Unlock()
	x.abandoned()
	s.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "envoy disconnected", x.attrs()...)
}
