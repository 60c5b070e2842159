package delta

import (
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/index"
)

// What befell some resources.
type What uint8

// What can happen to resources that is worth an Event.
const (
	// BecameWithheld: the rule or the order does not let them go yet.
	BecameWithheld What = iota
	// BecameReleased: they were withheld, and left in the response Nonce.
	BecameReleased
	// BecameQuarantined: the client rejected them, as its answer to Nonce.
	BecameQuarantined
)

// Event tells what befell resources of one type in one step, for the trace of the
// change behind them. Only what is being traced has events.
type Event struct {
	What What
	Type string
	// Cause is the newest change that led to the resources being sent or removed,
	// or the client's connection.
	Cause index.Cause
	// Told is, of BecameReleased, the span id of the Cause with which they were
	// last reported as withheld.
	Told  trace.SpanID
	Nonce string
	// By is, of BecameReleased, the change that set them free, if it was one: that
	// which completed a kind, say. Else it was an ACK, or time.
	By index.Cause
	// Some are the first few of them, Count is all.
	Some  []Withheld
	Count int
}

// maxSome bounds Event.Some.
const maxSome = 16

// Events gives what happened since it was last called. There are none unless
// Options.Events is set.
func (s *Stream) Events() []Event {
	if len(s.events) == 0 {
		return nil
	}
	out := make([]Event, 0, len(s.events))
	for _, e := range s.events {
		out = append(out, *e)
	}
	s.events = nil
	return out
}

// tell adds to the event of the same sort in this step, or begins one. Distinct
// causes are few: the transactions since the last step.
func (s *Stream) tell(like Event, w Withheld) {
	for i := len(s.events) - 1; i >= 0; i-- {
		if e := s.events[i]; e.same(&like) {
			e.add(w)
			return
		}
	}
	like.add(w)
	s.events = append(s.events, &like)
}

func (e *Event) same(x *Event) bool {
	return e.What == x.What && e.Type == x.Type && e.Nonce == x.Nonce && e.Told == x.Told && e.Cause.SpanID() == x.Cause.SpanID()
}

// add takes a resource in; one that waits for several things in turn counts once,
// with the last.
func (e *Event) add(w Withheld) {
	for i := range e.Some {
		if e.Some[i].Resource == w.Resource {
			e.Some[i] = w
			return
		}
	}
	e.Count++
	if len(e.Some) < maxSome {
		e.Some = append(e.Some, w)
	}
}

// told is what was last reported as withheld, and the span id of the cause.
type told struct {
	by   trace.SpanID
	what Withheld
}

// tellWithheld reports what is withheld anew, for another reason, or on behalf of
// another change than before.
func (s *Stream) tellWithheld(t *subscription, w *Withheld, anew bool) {
	if !s.opts.Events {
		return
	}
	cause := s.newest(t, w.Resource.Name)
	if !cause.IsSampled() || (!anew && t.told[w.Resource.Name].by == cause.SpanID()) {
		return
	}
	if t.told == nil {
		t.told = map[string]told{}
	}
	t.told[w.Resource.Name] = told{cause.SpanID(), *w}
	s.tell(Event{What: BecameWithheld, Type: t.typeURL, Cause: cause}, *w)
}

// tellReleased reports what leaves after having been reported as withheld.
func (s *Stream) tellReleased(t *subscription, name, nonce string) {
	if w, ok := t.told[name]; ok {
		s.tell(Event{What: BecameReleased, Type: t.typeURL, Cause: s.newest(t, name), Told: w.by, Nonce: nonce, By: s.freed}, w.what)
	}
}

// tellQuarantined reports what the client rejected for good.
func (s *Stream) tellQuarantined(t *subscription, name, nonce, message string) {
	if !s.opts.Events {
		return
	}
	if cause := s.newest(t, name); cause.IsSampled() {
		s.tell(Event{What: BecameQuarantined, Type: t.typeURL, Cause: cause, Nonce: nonce}, Withheld{Resource: t.key(name), Reason: message})
	}
}
