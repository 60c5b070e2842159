package k8swatch

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// batch is what goes to the sink in one transaction.
type batch struct {
	changes []index.Change
	eager   bool // all of it
	items   int
	event   string // of the first item that is one
	lists   []trace.SpanContext
	at      time.Time
}

func (b *batch) add(it item) {
	if b.items == 0 {
		b.eager, b.at = it.eager, it.at
	}
	b.items++
	b.changes = append(b.changes, it.changes...)
	b.eager = b.eager && it.eager
	if b.event == "" {
		b.event = it.event
	}
	if it.list.IsValid() && !slices.ContainsFunc(b.lists, it.list.Equal) {
		b.lists = append(b.lists, it.list)
	}
}

// maxNames bounds how many object names one span carries.
const maxNames = 16

// start begins the span of the batch, at the moment its first event came. Its
// context is the cause of the commit, with which the returned function ends the
// span. A batch of states and bookmarks alone has no span.
func (b *batch) start(tracer trace.Tracer) (index.Cause, func(index.Commit)) {
	if !slices.ContainsFunc(b.changes, worthASpan) {
		return index.Cause{}, func(index.Commit) {}
	}
	ctx, opts := context.Background(), []trace.SpanStartOption{trace.WithTimestamp(b.at)}
	// Pages of a list are that list's children; of several, linked to the others.
	if len(b.lists) > 0 {
		ctx = trace.ContextWithSpanContext(ctx, b.lists[0])
		for _, l := range b.lists[1:] {
			opts = append(opts, trace.WithLinks(trace.Link{SpanContext: l}))
		}
	}
	ctx, event := tracer.Start(ctx, tracing.SpanWatchEvent, opts...)
	_, span := tracer.Start(ctx, tracing.SpanCommit)
	if event.IsRecording() {
		event.SetAttributes(b.attributes()...)
	}
	return span.SpanContext(), func(c index.Commit) {
		if span.IsRecording() {
			span.SetAttributes(commitAttributes(c, len(b.changes))...)
			for _, k := range c.Observed {
				span.AddEvent(tracing.EventObserved, trace.WithAttributes(tracing.AttrKind.String(string(k)), tracing.AttrFrontier.String(b.listed(k).String())))
			}
		}
		span.End()
		event.End()
	}
}

func commitAttributes(c index.Commit, changes int) []attribute.KeyValue {
	return []attribute.KeyValue{
		tracing.AttrRevision.Int64(int64(c.Revision)),
		tracing.AttrChanges.Int(changes),
		tracing.AttrDerivations.Int(len(c.Derivations)),
		tracing.AttrResources.Int(len(c.Changed)),
		tracing.AttrProblems.Int(len(c.Problems)),
	}
}

// worthASpan: what changes objects, or says what is wrong with them.
func worthASpan(c index.Change) bool {
	switch c := c.(type) {
	case index.Upsert, index.Delete, index.Replace:
		return true
	case index.Problems:
		return len(c.List) > 0
	}
	return false
}

// listed gives the version of a kind's list that the batch completes; 0 for none.
func (b *batch) listed(kind index.Kind) index.ResourceVersion {
	for _, c := range b.changes {
		if r, ok := c.(index.Replace); ok && r.Kind == kind {
			return r.Version
		}
	}
	return 0
}

func (b *batch) attributes() []attribute.KeyValue {
	names := make([]string, 0, min(maxNames, len(b.changes)))
	var newest index.ResourceVersion
	var only index.ObjectKey
	events := 0
	for _, c := range b.changes {
		key, version := describe(c)
		if key.Kind == "" {
			continue
		}
		events++
		newest, only = max(newest, version), key
		if len(names) < maxNames {
			names = append(names, key.String())
		}
	}
	out := []attribute.KeyValue{
		tracing.AttrEvents.Int(events),
		tracing.AttrObjectName.StringSlice(names),
		tracing.AttrResourceVersion.String(newest.String()),
	}
	if events == 1 {
		out = append(out, tracing.AttrKind.String(string(only.Kind)), tracing.AttrNamespace.String(only.Namespace))
	}
	if b.event != "" {
		out = append(out, tracing.AttrEventType.String(b.event))
	}
	return out
}

// describe names the object that a change is about, or the kind for a list.
func describe(c index.Change) (index.ObjectKey, index.ResourceVersion) {
	switch c := c.(type) {
	case index.Upsert:
		return c.Object.ObjectKey, c.Object.Version
	case index.Delete:
		return c.Key, c.Version
	case index.Replace:
		return index.ObjectKey{Kind: c.Kind}, c.Version
	}
	return index.ObjectKey{}, 0
}
