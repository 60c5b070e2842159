package tracing

import (
	"math"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// encoder writes spans in OTLP's wire form (opentelemetry/proto/trace/v1), straight
// from the SDK's. The SDK's own way makes a protobuf object of each attribute
// first; under churn, that was most of what an export cost (make trace-cost).
//
// Messages within messages are written into buffers of their own, one for each
// depth, which are used again and again.
type encoder struct {
	scope, span, part, value, item []byte
}

// scopeSpans appends a ScopeSpans message with all of the spans.
func (e *encoder) scopeSpans(to []byte, spans []sdktrace.ReadOnlySpan) []byte {
	if len(spans) == 0 {
		return to
	}
	scope := spans[0].InstrumentationScope()
	e.part = appendString(e.part[:0], 1, scope.Name)
	e.part = appendString(e.part, 2, scope.Version)
	to = appendMessage(to, 1, e.part)
	for _, s := range spans {
		e.span = e.encode(e.span[:0], s)
		to = appendMessage(to, 2, e.span)
	}
	return appendString(to, 3, scope.SchemaURL)
}

// resource appends a Resource message.
func (e *encoder) resource(to []byte, attributes []attribute.KeyValue) []byte {
	return e.attributes(to, 1, attributes)
}

func (e *encoder) encode(to []byte, s sdktrace.ReadOnlySpan) []byte {
	c, parent := s.SpanContext(), s.Parent()
	to = appendIDs(to, c)
	to = appendString(to, 3, c.TraceState().String())
	if parent.HasSpanID() {
		id := parent.SpanID()
		to = appendMessage(to, 4, id[:])
	}
	to = appendString(to, 5, s.Name())
	to = appendNumber(to, 6, uint64(s.SpanKind()))
	to = appendFixed64(to, 7, uint64(s.StartTime().UnixNano()))
	to = appendFixed64(to, 8, uint64(s.EndTime().UnixNano()))
	to = e.attributes(to, 9, s.Attributes())
	to = appendNumber(to, 10, uint64(s.DroppedAttributes()))
	for _, ev := range s.Events() {
		e.part = appendFixed64(e.part[:0], 1, uint64(ev.Time.UnixNano()))
		e.part = appendString(e.part, 2, ev.Name)
		e.part = e.attributes(e.part, 3, ev.Attributes)
		e.part = appendNumber(e.part, 4, uint64(ev.DroppedAttributeCount))
		to = appendMessage(to, 11, e.part)
	}
	to = appendNumber(to, 12, uint64(s.DroppedEvents()))
	for _, l := range s.Links() {
		e.part = appendIDs(e.part[:0], l.SpanContext)
		e.part = appendString(e.part, 3, l.SpanContext.TraceState().String())
		e.part = e.attributes(e.part, 4, l.Attributes)
		e.part = appendNumber(e.part, 5, uint64(l.DroppedAttributeCount))
		e.part = appendFixed32(e.part, 6, flags(l.SpanContext, l.SpanContext.IsRemote()))
		to = appendMessage(to, 13, e.part)
	}
	to = appendNumber(to, 14, uint64(s.DroppedLinks()))
	e.part = appendString(e.part[:0], 2, s.Status().Description)
	e.part = appendNumber(e.part, 3, statusCode(s.Status().Code))
	to = appendMessage(to, 15, e.part)
	return appendFixed32(to, 16, flags(c, parent.IsRemote()))
}

// attributes appends each as a KeyValue in a field.
func (e *encoder) attributes(to []byte, field protowire.Number, list []attribute.KeyValue) []byte {
	for _, kv := range list {
		e.value = e.anyValue(e.value[:0], kv.Value)
		size := protowire.SizeTag(1) + protowire.SizeBytes(len(kv.Key)) + protowire.SizeTag(2) + protowire.SizeBytes(len(e.value))
		to = protowire.AppendTag(to, field, protowire.BytesType)
		to = protowire.AppendVarint(to, uint64(size))
		to = protowire.AppendTag(to, 1, protowire.BytesType)
		to = protowire.AppendString(to, string(kv.Key))
		to = protowire.AppendTag(to, 2, protowire.BytesType)
		to = protowire.AppendBytes(to, e.value)
	}
	return to
}

// anyValue appends an AnyValue: of the kinds of values that we use.
func (e *encoder) anyValue(to []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.BOOL:
		return protowire.AppendVarint(protowire.AppendTag(to, 2, protowire.VarintType), protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return protowire.AppendVarint(protowire.AppendTag(to, 3, protowire.VarintType), uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return protowire.AppendFixed64(protowire.AppendTag(to, 4, protowire.Fixed64Type), math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		e.item = e.item[:0]
		for _, s := range v.AsStringSlice() {
			size := protowire.SizeTag(1) + protowire.SizeBytes(len(s))
			e.item = protowire.AppendTag(e.item, 1, protowire.BytesType)
			e.item = protowire.AppendVarint(e.item, uint64(size))
			e.item = protowire.AppendString(protowire.AppendTag(e.item, 1, protowire.BytesType), s)
		}
		return appendMessage(to, 5, e.item)
	}
	return protowire.AppendString(protowire.AppendTag(to, 1, protowire.BytesType), v.String())
}

func appendIDs(to []byte, c trace.SpanContext) []byte {
	traceID, spanID := c.TraceID(), c.SpanID()
	return appendMessage(appendMessage(to, 1, traceID[:]), 2, spanID[:])
}

// statusCode gives OTLP's number: the SDK counts otherwise.
func statusCode(c codes.Code) uint64 {
	switch c {
	case codes.Ok:
		return 1
	case codes.Error:
		return 2
	}
	return 0
}

// flags are the span's trace flags, that it is known whether the other span is of
// another process, and whether it is.
func flags(c trace.SpanContext, remote bool) uint32 {
	const known, isRemote = 0x100, 0x200
	out := uint32(c.TraceFlags()) | known
	if remote {
		out |= isRemote
	}
	return out
}

func appendMessage(to []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, field, protowire.BytesType), message)
}

// What is zero is not written, as in all of proto3.

func appendString(to []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return to
	}
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), s)
}

func appendNumber(to []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return to
	}
	return protowire.AppendVarint(protowire.AppendTag(to, field, protowire.VarintType), n)
}

func appendFixed64(to []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(to, field, protowire.Fixed64Type), n)
}

func appendFixed32(to []byte, field protowire.Number, n uint32) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(to, field, protowire.Fixed32Type), n)
}
