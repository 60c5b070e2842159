package tracing

import "go.opentelemetry.io/otel/trace"

// Trace gives one trace by its id, in hexadecimal; false when the ring does not have it,
// or not any more.
func (r *Ring) Trace(id string) (Trace, bool) {
	key, err := trace.TraceIDFromHex(id)
	if err != nil {
		return Trace{}, false
	}
	r.mu.Lock()
	t := r.traces[key]
	var copied kept
	if t != nil {
		copied = *t // spans beyond the copied length may follow; those within never change
	}
	r.mu.Unlock()
	if t == nil {
		return Trace{}, false
	}
	return copied.view(), true
}

// Has reports whether the ring has a trace.
func (r *Ring) Has(id trace.TraceID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.traces[id] != nil
}
