package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"k8s.io/klog/v2"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/delta/ads"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/k8swatch"
	"github.com/holdfast-xds/holdfast/tracing"
)

// keptTraces is how many traces the status page can show.
const keptTraces = 128

// serve runs until ctx ends, or a part of it fails.
func (a app) serve(ctx context.Context, c serveConfig) error {
	handler, err := c.logHandler(a.stderr)
	if err != nil {
		return err
	}
	logger := slog.New(handler)
	klog.SetSlogLogger(logger.With("component", "client-go"))

	ring := tracing.NewRing(keptTraces)
	provider, flush, err := a.setUpTracing(ctx, ring, logger)
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 300*time.Millisecond)
		defer cancel()
		if err := flush(last); err != nil {
			logger.Warn("the last spans were not exported", "error", err)
		}
	}()

	s, err := newServer(c, logger, provider.Tracer(tracing.Scope), ring)
	if err != nil {
		return err
	}
	s.memory.byHand = a.getenv("GOGC") != "" || a.getenv("GOMEMLIMIT") != ""
	return s.run(ctx)
}

func (a app) setUpTracing(ctx context.Context, ring *tracing.Ring, logger *slog.Logger) (trace.TracerProvider, func(context.Context) error, error) {
	export, err := tracing.ExportProtocol(a.getenv)
	if err != nil {
		return nil, nil, usageError{err}
	}
	sampler, err := tracing.Sampler(a.getenv)
	if err != nil {
		return nil, nil, usageError{err}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("telemetry", "error", err) }))
	return tracing.Setup(ctx, tracing.Options{Version: thisBuild().version, Ring: ring, Export: export, Sampler: sampler, Disabled: tracing.Disabled(a.getenv)})
}

// server is a holdfast whose ports are open.
type server struct {
	logger  *slog.Logger
	memory  memory
	source  k8swatch.Source
	behind  *rollbackWatch
	ads     *ads.Server
	grpc    *grpc.Server
	admin   *admin.Server
	serving atomic.Bool

	xdsListener, adminListener net.Listener
}

// newServer opens the ports first: a port that is taken is the one thing that a
// person must know at once.
func newServer(c serveConfig, logger *slog.Logger, tracer trace.Tracer, ring *tracing.Ring) (*server, error) {
	rules, err := c.rules.rules()
	if err != nil {
		return nil, err
	}
	clocked := &clockedRules{Rules: rules}
	ix, err := index.New(clocked)
	if err != nil {
		return nil, err
	}
	metrics, err := tracing.NewMetrics()
	if err != nil {
		return nil, err
	}
	s, arrivals := &server{logger: logger, memory: memory{ix: ix}}, &tracing.Arrivals{}
	s.source, err = c.newSource(
		&sink{index: ix, rules: clocked, logger: logger, tracer: tracer},
		k8swatch.Options{Logger: logger, Tracer: tracer, Meter: metrics.Meter, Arrivals: arrivals},
	)
	if err != nil {
		return nil, err
	}
	if s.grpc, err = newGRPCServer(c.xdsTLS, logger); err != nil {
		return nil, err
	}
	guard, err := c.guard.guard()
	if err != nil {
		return nil, err
	}
	s.behind = newRollbackWatch(s.source, logger)
	s.ads, err = ads.New(ix, ads.Options{
		Logger: logger, Tracer: tracer, Meter: metrics.Meter, Arrivals: arrivals, Behind: s.behind.report,
		FreshEnvoyWait: max(c.freshEnvoyWait, 1), // 0 would be its default
		Guard:          guard,
	})
	if err != nil {
		return nil, err
	}
	s.ads.Register(s.grpc)
	options := admin.Options{
		Version: thisBuild().version, Index: ix, Types: rules.Types(),
		Streams: s.ads.Status, Holders: s.ads.Holders, Inventory: s.ads.Inventory, Departed: s.ads.Departed,
		Release: releaseBy(s.ads), Serving: s.serving.Load, Traces: ring, Metrics: metrics, Logger: logger,
	}
	if err := c.guardAdmin(&options); err != nil {
		return nil, err
	}
	if s.admin, err = admin.New(options); err != nil {
		return nil, err
	}
	return s, s.listen(c)
}

func (s *server) listen(c serveConfig) error {
	var err error
	if s.xdsListener, err = net.Listen("tcp", c.xdsAddress); err != nil {
		return fmt.Errorf("--xds-address: %w", err)
	}
	if s.adminListener, err = net.Listen("tcp", c.adminAddress); err != nil {
		_ = s.xdsListener.Close()
		return fmt.Errorf("--admin-address: %w", err)
	}
	return nil
}

// newGRPCServer: a few long streams, each mostly idle.
func newGRPCServer(files tlsFiles, logger *slog.Logger) (*grpc.Server, error) {
	opts := []grpc.ServerOption{
		// An Envoy with 10,000 clusters reconnects with a request of 450 KB.
		grpc.MaxRecvMsgSize(64 << 20),
		grpc.MaxConcurrentStreams(64), // for each connection; an Envoy opens one
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.ReadBufferSize(4 << 10),
		ads.ServerCodec(),
		grpc.WriteBufferSize(16 << 10), // shared by gRPC: only a connection that writes has one
		grpc.ConnectionTimeout(10 * time.Second),
	}
	if files.enabled() {
		r, err := newTLSReloader(files, logger)
		if err != nil {
			return nil, err
		}
		opts = append(opts, grpc.Creds(credentials.NewTLS(r.config())))
	}
	return grpc.NewServer(opts...), nil
}

// run serves until ctx ends or one of the parts fails; then it ends them all.
func (s *server) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := []func() error{
		func() error { return s.source.Run(ctx) },
		func() error { return s.admin.Serve(ctx, s.adminListener) },
		func() error { return s.serveXDS(ctx) },
		func() error { return s.behind.run(ctx) },
		func() error { return s.memory.run(ctx) },
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			defer cancel()
			ended <- part()
		}()
	}
	s.logger.Info("serving", "xds", s.xdsListener.Addr().String(), "admin", "http://"+s.adminListener.Addr().String(), "version", thisBuild().version)
	<-ctx.Done()
	s.logger.Info("stopping")
	var failed error
	for range parts {
		if err := <-ended; err != nil && failed == nil {
			failed = err
		}
	}
	return failed
}

// goodbye is how long requests under way may take at the end. Streams never end
// by themselves.
const goodbye = 200 * time.Millisecond

func (s *server) serveXDS(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.grpc.Serve(s.xdsListener) }()
	s.serving.Store(true)
	defer s.serving.Store(false)
	select {
	case err := <-failed:
		return fmt.Errorf("xDS listener: %w", err)
	case <-ctx.Done():
	}
	s.serving.Store(false)
	force := time.AfterFunc(goodbye, s.grpc.Stop)
	s.grpc.GracefulStop()
	force.Stop()
	s.ads.Wait()
	return <-failed // nil after a stop
}
