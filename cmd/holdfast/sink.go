package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
	"github.com/holdfast-xds/holdfast/translate"
)

// sink is the index as the source sees it: it logs each problem once, when the
// commit that brings it is made, and puts the derivations on the commit's trace.
type sink struct {
	index  *index.Index
	rules  *clockedRules
	logger *slog.Logger
	tracer trace.Tracer

	mu sync.Mutex // one commit at a time is recorded
}

// Apply applies the changes to the index.
func (s *sink) Apply(cause index.Cause, changes ...index.Change) index.Commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules.recording.Store(cause.IsSampled())
	c := s.index.Apply(cause, changes...)
	s.trace(cause, c)
	for _, x := range c.Problems {
		s.logger.Warn(x.Message, "object", x.Object.String(), "field", x.Field, "severity", string(x.Severity), "revision", c.Revision, tracing.LogAttr(cause))
	}
	return c
}

// trace makes the spans of the derivations, children of the commit's.
func (s *sink) trace(cause index.Cause, c index.Commit) {
	ctx := trace.ContextWithSpanContext(context.Background(), cause)
	for _, r := range s.rules.take() {
		if !slices.Contains(c.Derivations, r.id) {
			continue // of another writer, at the same moment
		}
		_, span := s.tracer.Start(ctx, tracing.SpanDerive, trace.WithTimestamp(r.from))
		if span.IsRecording() {
			span.SetAttributes(r.attributes()...)
		}
		span.End(trace.WithTimestamp(r.to))
	}
}

// clockedRules note when each derivation ran, for the traces; the index, which
// runs them, has no clock.
type clockedRules struct {
	index.Rules

	recording atomic.Bool

	mu  sync.Mutex
	ran []derived
}

// derived is the run of one derivation; the last of many stands for more of them.
type derived struct {
	id       index.DerivationID
	from, to time.Time
	more     int
}

func (r *derived) attributes() []attribute.KeyValue {
	out := make([]attribute.KeyValue, 1, 3)
	out[0] = tracing.AttrDerivation.String(string(r.id))
	if form, name := translate.Subject(r.id); form == "host" || form == "tls" {
		out = append(out, tracing.AttrHost.String(name))
	}
	if r.more > 0 {
		out = append(out, tracing.AttrDerivations.Int(1+r.more))
	}
	return out
}

// maxRuns bounds the spans of one commit.
const maxRuns = 8

// Derive implements index.Rules.
func (c *clockedRules) Derive(id index.DerivationID, param any, r *index.Reader) {
	if !c.recording.Load() {
		c.Rules.Derive(id, param, r)
		return
	}
	from := time.Now()
	c.Rules.Derive(id, param, r)
	c.note(derived{id: id, from: from, to: time.Now()})
}

func (c *clockedRules) note(r derived) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.ran); n == maxRuns {
		c.ran[n-1].to = r.to
		c.ran[n-1].more++
		return
	}
	c.ran = append(c.ran, r)
}

// take ends the recording and gives what ran.
func (c *clockedRules) take() []derived {
	if !c.recording.Swap(false) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.ran
	c.ran = nil
	return out
}
