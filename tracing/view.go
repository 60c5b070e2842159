package tracing

import (
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// view turns the spans that the SDK gave us into what people read.
func (t *kept) view() Trace {
	out := Trace{ID: t.spans[0].SpanContext().TraceID().String(), Start: t.start(), Dropped: t.dropped}
	end := out.Start
	for _, s := range t.spans {
		out.Spans = append(out.Spans, viewSpan(s))
		if s.EndTime().After(end) {
			end = s.EndTime()
		}
	}
	slices.SortStableFunc(out.Spans, func(a, b Span) int { return a.Start.Compare(b.Start) })
	out.Duration = Duration(end.Sub(out.Start))
	return out
}

func viewSpan(s sdktrace.ReadOnlySpan) Span {
	out := Span{
		ID: s.SpanContext().SpanID().String(), Name: s.Name(), Start: s.StartTime(),
		Duration: Duration(s.EndTime().Sub(s.StartTime())), Attributes: viewAttributes(s.Attributes()),
	}
	if p := s.Parent(); p.HasSpanID() {
		out.Parent = p.SpanID().String()
	}
	for _, l := range s.Links() {
		out.Links = append(out.Links, l.SpanContext.TraceID().String())
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, Event{Name: e.Name, Time: e.Time, Attributes: viewAttributes(e.Attributes)})
	}
	if st := s.Status(); st.Code == codes.Error {
		out.Error = st.Description
	}
	return out
}

func viewAttributes(kvs []attribute.KeyValue) map[string]string {
	if len(kvs) == 0 {
		return nil
	}
	out := make(map[string]string, len(kvs))
	for _, kv := range kvs {
		out[string(kv.Key)] = kv.Value.String()
	}
	return out
}

func jsonSeconds(d time.Duration) []byte {
	return strconv.AppendFloat(nil, d.Seconds(), 'f', -1, 64)
}
