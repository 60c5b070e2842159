// Package traced runs a holdfast with an Envoy, as package rig does, whose traces
// go to a real collector: the receiver of OpenTelemetry's collector, which writes
// them to a file, or a Jaeger, which is asked by its API.
//
//	a folder ──▶ holdfast ──OTLP──▶ Receiver ──▶ Spans
//	                │          └──▶ Jaeger   ──▶ Find
//	              Envoy
//
// Who uses it has set OTEL_EXPORTER_OTLP_* before holdfast starts: it inherits them.
package traced

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// patience bounds every wait.
const patience = 90 * time.Second

// World is a rig with some hosts, settled.
type World struct {
	*rig.Rig
	Hosts   []fixture.Host
	objects string
}

// Start starts holdfast with the given number of hosts, and Envoy.
func Start(ctx context.Context, r *rig.Rig, hosts int) (*World, error) {
	w := &World{Rig: r}
	var err error
	if w.objects, err = r.Objects(); err != nil {
		return nil, err
	}
	if w.Hosts, err = fixture.WriteAll(w.objects, r.Generator, hosts); err != nil {
		return nil, err
	}
	if err := r.StartHoldfast("--source=dir:" + w.objects); err != nil {
		return nil, err
	}
	if err := r.StartEnvoy(ctx); err != nil {
		return nil, err
	}
	if err := r.Envoy.WaitReady(ctx, patience); err != nil {
		return nil, err
	}
	_, err = r.Settle(ctx, patience)
	return w, err
}

// Plain gives a host without TLS, of which there is one thing to derive.
func (w *World) Plain() *fixture.Host {
	for i := range w.Hosts {
		if !w.Hosts[i].TLS {
			return &w.Hosts[i]
		}
	}
	return &w.Hosts[0]
}

// Edit changes one host's HTTPProxy, with no new cluster in it: the time-out of a
// route. It waits until Envoy has it.
func (w *World) Edit(ctx context.Context, h *fixture.Host, seconds int) error {
	before, err := w.Holdfast.Status(ctx)
	if err != nil {
		return err
	}
	if err := fixture.SetTimeout(h, fmt.Sprintf("%ds", seconds)); err != nil {
		return err
	}
	if err := fixture.WriteHost(w.objects, h); err != nil {
		return err
	}
	return w.sent(ctx, before.Sent().Resources)
}

// Add adds one more host, with a Service and a cluster of its own.
func (w *World) Add(ctx context.Context) (*fixture.Host, error) {
	before, err := w.Holdfast.Status(ctx)
	if err != nil {
		return nil, err
	}
	h := w.Generator.Host(len(w.Hosts))
	w.Hosts = append(w.Hosts, h)
	if err := fixture.WriteHost(w.objects, &h); err != nil {
		return nil, err
	}
	return &h, w.sent(ctx, before.Sent().Resources)
}

// sent waits until more was sent than before, and acknowledged.
func (w *World) sent(ctx context.Context, before uint64) error {
	_, err := w.Holdfast.Await(ctx, "the change is with Envoy", patience, func(s *holdfast.Status) error {
		if s.Sent().Resources <= before {
			return fmt.Errorf("nothing new was sent")
		}
		return s.Quiet(rig.Node)
	})
	return err
}

// Span is one span, as a test or a person looks at it.
type Span struct {
	Trace, ID, Parent string
	Name              string // without "holdfast."
	Start             time.Time
	Duration          time.Duration
	Attributes        map[string]string
	Events            []string
	Links             []string // trace ids
}

// Tree draws a trace: each span under its parent, in the order of time, with the
// attribute that tells it from its siblings. The same change gives the same tree.
func Tree(spans []Span) string {
	var out strings.Builder
	for _, r := range flatten(spans) {
		indent := strings.Repeat("  ", r.depth)
		out.WriteString(strings.TrimRight(indent+r.Name+" "+r.about(), " ") + "\n")
		for _, e := range r.Events {
			out.WriteString(indent + "  ! " + e + "\n")
		}
	}
	return out.String()
}

// about gives what tells a span from its siblings.
func (s *Span) about() string {
	if url := s.Attributes["holdfast.type_url"]; url != "" {
		return url[strings.LastIndexAny(url, "./")+1:]
	}
	for _, key := range []string{"holdfast.derivation", "holdfast.kind"} {
		if v := s.Attributes[key]; v != "" {
			return v
		}
	}
	return ""
}
