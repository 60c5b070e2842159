package ads

import (
	"context"
	"log/slog"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// maxNames bounds the resource names in a span.
const maxNames = 8

// flight is a response that was sent and is not answered.
type flight struct {
	typeURL string
	oldest  index.Revision // of the changes that it carries
	span    trace.Span     // nil when none of them is traced
}

// connecting opens the span of the connection. It ends with the first request;
// what the client is sent because it asks for it is its child.
func (x *session) connecting() {
	_, x.connection = x.server.opts.Tracer.Start(context.Background(), tracing.SpanConnect, trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer))
}

func (x *session) connected(req *discoveryv3.DeltaDiscoveryRequest) {
	if x.connection.IsRecording() {
		x.connection.SetAttributes(tracing.AttrStream.Int64(int64(x.id)), tracing.AttrNode.String(req.GetNode().GetId()),
			tracing.AttrPeerAddress.String(x.peer), tracing.AttrTypeURL.String(req.GetTypeUrl()),
			tracing.AttrHeld.Int(len(req.GetInitialResourceVersions())))
	}
	x.connection.End()
	x.server.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "envoy connected",
		slog.Uint64("stream", x.id), slog.String("node", req.GetNode().GetId()), slog.String("peer", x.peer), tracing.LogAttr(x.connection.SpanContext()))
}

// traced opens the span of a response. It is a child of the newest change that it
// carries and links to the others; it ends with the client's answer.
func (x *session) traced(r *delta.Response, size int) trace.Span {
	if len(r.Causes) == 0 {
		return nil
	}
	newest := len(r.Causes) - 1
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindProducer)}
	if links := linksTo(r.Causes[:newest]); len(links) > 0 {
		opts = append(opts, trace.WithLinks(links...))
	}
	_, span := x.server.opts.Tracer.Start(trace.ContextWithSpanContext(context.Background(), r.Causes[newest]), tracing.SpanResponse, opts...)
	if span.IsRecording() {
		span.SetAttributes(x.responseAttrs(r, size)...)
	}
	return span
}

func linksTo(causes []index.Cause) []trace.Link {
	links := make([]trace.Link, 0, len(causes))
	for _, c := range causes {
		links = append(links, trace.Link{SpanContext: c})
	}
	return links
}

func (x *session) responseAttrs(r *delta.Response, size int) []attribute.KeyValue {
	names := make([]string, 0, min(maxNames, len(r.Send)+len(r.Remove)))
	for _, res := range r.Send[:min(maxNames, len(r.Send))] {
		names = append(names, res.Name)
	}
	for _, proof := range r.Remove[:min(maxNames-len(names), len(r.Remove))] {
		names = append(names, proof.Key().Name)
	}
	return []attribute.KeyValue{
		tracing.AttrStream.Int64(int64(x.id)), tracing.AttrNode.String(x.machine.Node()),
		tracing.AttrPeerAddress.String(x.peer), tracing.AttrTypeURL.String(r.Type), tracing.AttrNonce.String(r.Nonce),
		tracing.AttrResources.Int(len(r.Send)), tracing.AttrRemoved.Int(len(r.Remove)), tracing.AttrBytes.Int(size),
		tracing.AttrResourceNames.StringSlice(names), tracing.AttrRevision.Int64(int64(r.Revised)),
	}
}

// answered ends the span of the response that a request answers, counts the
// answer, and logs a NACK.
func (x *session) answered(req *discoveryv3.DeltaDiscoveryRequest, events []delta.Event) {
	f := x.flights[req.GetResponseNonce()]
	if f == nil || f.typeURL != req.GetTypeUrl() {
		return // no answer, or one to nothing that we know of
	}
	delete(x.flights, req.GetResponseNonce())
	ctx := context.Background()
	if f.span != nil {
		ctx = trace.ContextWithSpan(ctx, f.span)
		defer f.span.End()
	}
	if req.GetErrorDetail() != nil {
		x.rejected(ctx, f, req, events)
		return
	}
	x.acked(ctx, f.typeURL, f.oldest)
	if f.span != nil {
		_, ack := x.server.opts.Tracer.Start(ctx, tracing.SpanAck)
		ack.End()
	}
}

func (x *session) rejected(ctx context.Context, f *flight, req *discoveryv3.DeltaDiscoveryRequest, events []delta.Event) {
	x.server.meters.nacks.Add(ctx, 1, x.server.meters.typ(f.typeURL))
	message := clip(req.GetErrorDetail().GetMessage())
	x.server.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "envoy rejected a response", append(x.attrs(),
		slog.String("type", req.GetTypeUrl()), slog.String("nonce", req.GetResponseNonce()), slog.String("error", message),
		tracing.LogAttr(trace.SpanContextFromContext(ctx)))...)
	if f.span == nil {
		return
	}
	_, nack := x.server.opts.Tracer.Start(ctx, tracing.SpanNack)
	defer nack.End()
	nack.SetAttributes(tracing.AttrErrorDetail.String(message), tracing.AttrErrorType.String(errorType(req)))
	nack.SetStatus(otelcodes.Error, "rejected")
	f.span.SetStatus(otelcodes.Error, "rejected")
	for _, e := range events {
		if e.What == delta.BecameQuarantined && e.Nonce == req.GetResponseNonce() {
			for _, w := range e.Some {
				nack.AddEvent(tracing.EventQuarantined, trace.WithAttributes(
					tracing.AttrResource.String(w.Resource.Name), tracing.AttrTypeURL.String(w.Resource.Type), tracing.AttrErrorDetail.String(clip(w.Reason))))
			}
		}
	}
}

// tell puts on the traces what became withheld, and what left after all.
func (x *session) tell(events []delta.Event) {
	for i := range events {
		switch e := &events[i]; e.What {
		case delta.BecameWithheld:
			x.withheld(e)
		case delta.BecameReleased:
			x.released(e)
		}
	}
}

// maxWithholds bounds the spans that a later release can link to.
const maxWithholds = 1024

func (x *session) withheld(e *delta.Event) {
	_, span := x.server.opts.Tracer.Start(trace.ContextWithSpanContext(context.Background(), e.Cause), tracing.SpanWithhold)
	defer span.End()
	if len(x.withholds) >= maxWithholds {
		clear(x.withholds)
	}
	x.withholds[e.Cause.SpanID()] = span.SpanContext()
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(tracing.AttrStream.Int64(int64(x.id)), tracing.AttrNode.String(x.machine.Node()),
		tracing.AttrTypeURL.String(e.Type), tracing.AttrWithheld.Int(e.Count))
	for _, w := range e.Some {
		span.AddEvent(tracing.EventWithheld, trace.WithAttributes(withheldAttrs(w)...))
	}
}

func withheldAttrs(w delta.Withheld) []attribute.KeyValue {
	out := []attribute.KeyValue{
		tracing.AttrResource.String(w.Resource.Name), tracing.AttrTypeURL.String(w.Resource.Type),
		tracing.AttrAction.String(w.Action), tracing.AttrReason.String(clip(w.Reason)),
	}
	if len(w.Missing) == 0 {
		return out
	}
	missing := make([]string, 0, len(w.Missing))
	for _, l := range w.Missing {
		missing = append(missing, string(l.Kind))
	}
	return append(out, tracing.AttrMissing.StringSlice(missing))
}

func (x *session) released(e *delta.Event) {
	f := x.flights[e.Nonce]
	if f == nil || f.span == nil || !f.span.IsRecording() {
		return
	}
	if c, ok := x.withholds[e.Told]; ok {
		f.span.AddLink(trace.Link{SpanContext: c, Attributes: []attribute.KeyValue{tracing.AttrReason.String("withheld there")}})
	}
	if e.By.IsValid() {
		f.span.AddLink(trace.Link{SpanContext: e.By, Attributes: []attribute.KeyValue{tracing.AttrReason.String("set free by")}})
	}
	for _, w := range e.Some {
		f.span.AddEvent(tracing.EventReleased, trace.WithAttributes(tracing.AttrResource.String(w.Resource.Name), tracing.AttrReason.String(clip(w.Reason))))
	}
}

// abandoned ends the spans of a stream that has ended.
func (x *session) abandoned() {
	if x.connection != nil {
		x.connection.End() // a second end does nothing
	}
	for _, f := range x.flights {
		if f.span != nil {
			f.span.SetStatus(otelcodes.Error, "the stream ended before the answer")
			f.span.End()
		}
	}
}

// errorType gives the status code of a NACK in the words of gRPC.
func errorType(req *discoveryv3.DeltaDiscoveryRequest) string {
	return codes.Code(uint32(req.GetErrorDetail().GetCode())).String()
}

// clip bounds what a client can make us write. What may be a private key is gone
// already: see withoutKeys.
func clip(message string) string {
	const most = 512
	if len(message) > most {
		return message[:most] + "…"
	}
	return message
}
