package main

import (
	"context"
	"net"
	"sync/atomic"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// collector takes spans and counts them.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	address string
	spans   atomic.Int64
	server  *grpc.Server
	ended   chan error
}

func startCollector() (*collector, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &collector{address: l.Addr().String(), server: grpc.NewServer(), ended: make(chan error, 1)}
	collectorv1.RegisterTraceServiceServer(c.server, c)
	go func() { c.ended <- c.server.Serve(l) }()
	return c, nil
}

func (c *collector) stop() error {
	c.server.Stop()
	return <-c.ended // nil after a stop
}

// Export implements the OTLP trace service.
func (c *collector) Export(_ context.Context, r *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	for _, rs := range r.GetResourceSpans() {
		for _, ss := range rs.GetScopeSpans() {
			c.spans.Add(int64(len(ss.GetSpans())))
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}
