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
	if !slices.ContainsFunc(b.changes, touchesObjects) {
		return index.Cause{}, func(index.Commit) {}
	}
	ctx, opts := context.Background(), []trace.SpanStartOption{trace.WithTimestamp(b.at)}
	// Pages of one list are that list's children; of several, linked to each.
	if len(b.lists) == 1 {
		ctx = trace.ContextWithSpanContext(ctx, b.lists[0])
	} else {
		for _, l := range b.lists {
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
				span.AddEvent(tracing.EventObserved, trace.WithAttributes(tracing.AttrKind.String(string(k))))
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

func touchesObjects(c index.Change) bool {
	switch c.(type) {
	case index.Upsert, index.Delete, index.Replace:
		return true
	}
	return false
}

func (b *batch) attributes() []attribute.KeyValue {
	var names []string
	var newest index.ResourceVersion
	events := 0
	for _, c := range b.changes {
		name, version := describe(c)
		if name == "" {
			continue
		}
		events++
		newest = max(newest, version)
		if len(names) < maxNames {
			names = append(names, name)
		}
	}
	out := []attribute.KeyValue{
		tracing.AttrEvents.Int(events),
		tracing.AttrObjectName.StringSlice(names),
		tracing.AttrResourceVersion.String(newest.String()),
	}
	if b.event != "" {
		out = append(out, tracing.AttrEventType.String(b.event))
	}
	return out
}

// describe names the object that a change is about, or the kind for a list.
func describe(c index.Change) (string, index.ResourceVersion) {
	switch c := c.(type) {
	case index.Upsert:
		return c.Object.String(), c.Object.Version
	case index.Delete:
		return c.Key.String(), c.Version
	case index.Replace:
		return string(c.Kind), c.Version
	}
	return "", 0
}
