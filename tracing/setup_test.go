package tracing_test

import (
	"context"
	"net"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/holdfast-xds/holdfast/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is an OTLP collector that hands on what it gets.
type receiver struct {
	collectorv1.UnimplementedTraceServiceServer
	got chan *collectorv1.ExportTraceServiceRequest
}

func (r *receiver) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	r.got <- req
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

func startReceiver(t *testing.T) (r *receiver, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r = &receiver{got: make(chan *collectorv1.ExportTraceServiceRequest, 4)}
	g := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(g, r)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return r, l.Addr().String()
}

func TestSetupExportsByOTLP(t *testing.T) {
	r, address := startReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+address)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	ring := tracing.NewRing(4)
	provider, shutdown, err := tracing.Setup(t.Context(), tracing.Options{Version: "v1.2.3", Ring: ring, Export: tracing.GRPC})
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer(tracing.Scope).Start(t.Context(), tracing.SpanCommit, trace.WithAttributes(tracing.AttrRevision.Int(7)))
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	exported := (<-r.got).GetResourceSpans()[0]
	if got := exported.GetScopeSpans()[0].GetSpans()[0].GetName(); got != tracing.SpanCommit {
		t.Errorf("exported span %q", got)
	}
	attributes := attributesOf(exported.GetResource().GetAttributes())
	for k, want := range map[string]string{"service.name": "holdfast", "service.version": "v1.2.3", "deployment.environment.name": "test"} {
		if attributes[k] != want {
			t.Errorf("resource attribute %s = %q, want %q", k, attributes[k], want)
		}
	}
	if len(ring.Traces(1)) != 1 {
		t.Error("an exported span is not in the ring")
	}
}

func attributesOf(kvs []*commonv1.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range kvs {
		out[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
	return out
}

func TestSetupWithoutExportKeepsTraces(t *testing.T) {
	t.Setenv("OTEL_SERVICE_NAME", "edge")
	ring := tracing.NewRing(4)
	provider, shutdown, err := tracing.Setup(t.Context(), tracing.Options{Ring: ring})
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer(tracing.Scope).Start(t.Context(), tracing.SpanCommit)
	span.End()
	if err := shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(ring.Traces(1)) != 1 {
		t.Error("the span is not in the ring")
	}
}

// Head sampling is the SDK's: what is not sampled costs nothing, here neither.
func TestSetupHonoursTheSampler(t *testing.T) {
	ring := tracing.NewRing(4)
	provider, shutdown, err := tracing.Setup(t.Context(), tracing.Options{Ring: ring, Sampler: sdktrace.NeverSample()})
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer(tracing.Scope).Start(t.Context(), tracing.SpanCommit)
	span.End()
	if err := shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ring.Traces(1); len(got) != 0 {
		t.Errorf("kept %+v", got)
	}
}

func TestExportProtocol(t *testing.T) {
	const endpoint, tracesEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	const protocol, tracesProtocol = "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	for name, c := range map[string]struct {
		env  map[string]string
		want tracing.Protocol
		fail bool
	}{
		"nothing set":           {nil, tracing.NoExport, false},
		"a protocol alone":      {map[string]string{protocol: "grpc"}, tracing.NoExport, false},
		"an endpoint":           {map[string]string{endpoint: "http://c:4318"}, tracing.HTTPProtobuf, false},
		"an endpoint of traces": {map[string]string{tracesEndpoint: "http://c:4318"}, tracing.HTTPProtobuf, false},
		"grpc":                  {map[string]string{endpoint: "http://c:4317", protocol: "grpc"}, tracing.GRPC, false},
		"traces' own protocol":  {map[string]string{endpoint: "http://c", protocol: "http/protobuf", tracesProtocol: "grpc"}, tracing.GRPC, false},
		"no exporter":           {map[string]string{endpoint: "http://c", "OTEL_TRACES_EXPORTER": "none"}, tracing.NoExport, false},
		"disabled":              {map[string]string{endpoint: "http://c", "OTEL_SDK_DISABLED": "true"}, tracing.NoExport, false},
		"an unknown protocol":   {map[string]string{endpoint: "http://c", protocol: "http/json"}, tracing.NoExport, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tracing.ExportProtocol(func(k string) string { return c.env[k] })
			if got != c.want || (err != nil) != c.fail {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
