package tracing

import (
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// LogAttr gives a log line the id of the trace that it belongs to, under the name
// that OpenTelemetry gives it in logs of other formats. What is not traced gives an
// attribute that is not shown.
func LogAttr(c trace.SpanContext) slog.Attr {
	if !c.IsSampled() {
		return slog.Attr{}
	}
	return slog.String("trace_id", c.TraceID().String())
}
