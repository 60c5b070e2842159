package ads

import (
	"context"
	"log/slog"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/tracing"
)

// maxNames bounds the resource names in a span.
const maxNames = 8

// traced opens the span of a response. It is a child of the newest change that it
// carries and links to the others; it ends with the client's answer.
func (x *session) traced(r *delta.Response, size int) {
	if len(r.Causes) == 0 {
		return
	}
	newest := len(r.Causes) - 1
	links := make([]trace.Link, 0, newest)
	for _, c := range r.Causes[:newest] {
		if c.TraceID() != r.Causes[newest].TraceID() {
			links = append(links, trace.Link{SpanContext: c})
		}
	}
	ctx := trace.ContextWithSpanContext(context.Background(), r.Causes[newest])
	_, span := x.server.opts.Tracer.Start(ctx, tracing.SpanResponse, trace.WithLinks(links...), trace.WithSpanKind(trace.SpanKindProducer))
	if span.IsRecording() {
		span.SetAttributes(x.responseAttrs(r, size)...)
	}
	x.spans[r.Nonce] = span
}

func (x *session) responseAttrs(r *delta.Response, size int) []attribute.KeyValue {
	names := make([]string, 0, maxNames)
	for _, res := range r.Send {
		if len(names) < maxNames {
			names = append(names, res.Name)
		}
	}
	for _, proof := range r.Remove {
		if len(names) < maxNames {
			names = append(names, proof.Key().Name)
		}
	}
	return []attribute.KeyValue{
		tracing.AttrStream.Int64(int64(x.id)), tracing.AttrNode.String(x.machine.Node()),
		tracing.AttrPeerAddress.String(x.peer), tracing.AttrTypeURL.String(r.Type), tracing.AttrNonce.String(r.Nonce),
		tracing.AttrResources.Int(len(r.Send)), tracing.AttrRemoved.Int(len(r.Remove)), tracing.AttrBytes.Int(size),
		tracing.AttrResourceNames.StringSlice(names), tracing.AttrRevision.Int64(int64(r.Revised)),
	}
}

// answered ends the span of the response that a request answers, and logs a NACK.
func (x *session) answered(req *discoveryv3.DeltaDiscoveryRequest) {
	nonce := req.GetResponseNonce()
	if nonce == "" {
		return
	}
	message := req.GetErrorDetail().GetMessage()
	if req.GetErrorDetail() != nil {
		x.server.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn, "envoy rejected a response",
			append(x.attrs(), slog.String("type", req.GetTypeUrl()), slog.String("nonce", nonce), slog.String("error", clip(message)))...)
	}
	span := x.spans[nonce]
	if span == nil {
		return
	}
	delete(x.spans, nonce)
	ctx := trace.ContextWithSpan(context.Background(), span)
	name := tracing.SpanAck
	if req.GetErrorDetail() != nil {
		name = tracing.SpanNack
	}
	_, answer := x.server.opts.Tracer.Start(ctx, name)
	if req.GetErrorDetail() != nil {
		answer.SetAttributes(tracing.AttrErrorDetail.String(clip(message)))
		answer.SetStatus(otelcodes.Error, "rejected")
		span.SetStatus(otelcodes.Error, "rejected")
	}
	answer.End()
	span.End()
}

// clip bounds what a client can make us write: a NACK for a wrong Any contains a
// dump of the whole resource, which may hold a private key.
func clip(message string) string {
	const most = 512
	if len(message) > most {
		return message[:most] + "…"
	}
	return message
}
