package tracing

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
)

// caught is a client that keeps what it would send, as it would arrive.
type caught struct {
	spans []*tracev1.ResourceSpans
	err   error
}

func (c *caught) Start(context.Context) error { return nil }
func (c *caught) Stop(context.Context) error  { return nil }
func (c *caught) UploadTraces(_ context.Context, list []*tracev1.ResourceSpans) error {
	for _, m := range list {
		wire, err := proto.Marshal(m)
		if err != nil {
			return err
		}
		var arrived tracev1.ResourceSpans
		if err := proto.Unmarshal(wire, &arrived); err != nil {
			return err
		}
		c.spans = append(c.spans, &arrived)
	}
	return c.err
}

// Our encoding says what the SDK's own says, of every field that a span can have.
func TestEncodingIsTheSDKs(t *testing.T) {
	ids := func(n byte, remote bool) trace.SpanContext {
		return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{n, 1}, SpanID: trace.SpanID{n, 2}, TraceFlags: trace.FlagsSampled, Remote: remote})
	}
	at := time.Unix(1_700_000_000, 123_456_789)
	attributes := []attribute.KeyValue{
		attribute.String("text", "äöü"), attribute.String("empty", ""), attribute.Int("number", -7), attribute.Int("zero", 0),
		attribute.Bool("yes", true), attribute.Bool("no", false), attribute.Float64("share", 0.25), attribute.StringSlice("list", []string{"a", "", "c"}), attribute.StringSlice("none", nil),
	}
	stubs := tracetest.SpanStubs{
		{Name: "bare", SpanContext: ids(1, false), StartTime: at, EndTime: at},
		{
			Name: "full", SpanContext: ids(2, false), Parent: ids(1, true), SpanKind: trace.SpanKindProducer, StartTime: at, EndTime: at.Add(time.Minute),
			Attributes: attributes, DroppedAttributes: 300, DroppedEvents: 2, DroppedLinks: 1,
			Events: []sdktrace.Event{{Name: "happened", Time: at, Attributes: attributes, DroppedAttributeCount: 3}, {Name: "again", Time: at}},
			Links:  []sdktrace.Link{{SpanContext: ids(3, true), Attributes: attributes[:1], DroppedAttributeCount: 4}, {SpanContext: ids(4, false)}},
			Status: sdktrace.Status{Code: codes.Error, Description: "went wrong"},
		},
		{Name: "good", SpanContext: ids(5, false), Parent: ids(2, false), StartTime: at, EndTime: at, Status: sdktrace.Status{Code: codes.Ok}},
	}
	for i := range stubs {
		stubs[i].InstrumentationScope = instrumentation.Scope{Name: Scope, Version: "v1", SchemaURL: "https://schema"}
		stubs[i].Resource = resource.NewWithAttributes("https://resource", attribute.String("service.name", "holdfast"))
	}
	var theirs, ours caught
	official, err := otlptrace.New(t.Context(), &theirs)
	if err != nil {
		t.Fatal(err)
	}
	own, err := startExporter(t.Context(), &ours)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // buffers are used again
		ours.spans, theirs.spans = nil, nil
		if err := errors.Join(official.ExportSpans(t.Context(), stubs.Snapshots()), own.ExportSpans(t.Context(), stubs.Snapshots())); err != nil {
			t.Fatal(err)
		}
		if len(ours.spans) != 1 || !proto.Equal(ours.spans[0], theirs.spans[0]) {
			t.Errorf("got\n%s\nwant\n%s", prototext.Format(ours.spans[0]), prototext.Format(theirs.spans[0]))
		}
	}
	ours.err = errors.New("the collector is away")
	if err := own.ExportSpans(t.Context(), stubs.Snapshots()); !errors.Is(err, ours.err) {
		t.Errorf("an export that fails: %v", err)
	}
}
