package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/benchmarks/client"
	"github.com/holdfast-xds/holdfast/delta/ads"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/tracing"
	"github.com/holdfast-xds/holdfast/translate"
)

// live is a holdfast without a source: hosts are applied by hand, and clients that
// behave like Envoys are connected to it.
type live struct {
	index   *index.Index
	ads     *ads.Server
	server  *admin.Server
	ring    *tracing.Ring
	tracer  trace.Tracer
	hosts   []fixture.Host
	version index.ResourceVersion
	address string
	fleet   *client.Fleet
}

func newLive(t *testing.T, edit func(*admin.Options)) *live {
	t.Helper()
	rules := translate.New(translate.Options{})
	ix, err := index.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	w := &live{index: ix, ring: tracing.NewRing(64), version: 10}
	w.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.ring)).Tracer("")
	w.ads, err = ads.New(ix, ads.Options{Tracer: w.tracer})
	if err != nil {
		t.Fatal(err)
	}
	o := admin.Options{
		Version: "v1", Index: ix, Types: rules.Types(), Traces: w.ring, Logger: slog.New(slog.DiscardHandler),
		Streams: w.ads.Status, Holders: w.ads.Holders, Inventory: w.ads.Inventory, Serving: func() bool { return true },
	}
	if edit != nil {
		edit(&o)
	}
	if w.server, err = admin.New(o); err != nil {
		t.Fatal(err)
	}
	ix.Apply(index.Cause{}, index.SourceID{ID: "c1"})
	w.listen(t)
	w.fleet = client.NewFleet(context.Background())
	t.Cleanup(w.fleet.Close)
	return w
}

func (w *live) listen(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	w.ads.Register(g)
	w.address = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
		w.ads.Wait()
	})
}

// load applies the first n hosts, kind by kind, as complete lists; the excepted
// kinds stay incomplete.
func (w *live) load(n int, except ...index.Kind) {
	g := fixture.New(fixture.Options{Seed: 7, TLSPercent: 10, Backends: []fixture.Backend{{Name: "amber", Addrs: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:8080"), netip.MustParseAddrPort("192.0.2.2:8080")}}}})
	w.hosts = g.Hosts(n)
	lists := map[index.Kind][]*index.Object{}
	add := func(objects []fixture.Object) {
		for _, o := range objects {
			x := w.object(o)
			lists[x.Kind] = append(lists[x.Kind], x)
		}
	}
	add(g.Shared(n))
	for i := range w.hosts {
		add(w.hosts[i].Objects)
	}
	for i := range kinds.All {
		k := kinds.All[i].Kind
		absent := false
		for _, x := range except {
			absent = absent || x == k
		}
		if !absent {
			w.index.Apply(index.Cause{}, index.Replace{Kind: k, Objects: lists[k], Version: w.version})
			w.index.Apply(index.Cause{}, index.KindStatus{Kind: k, State: index.Observed, At: time.Now()})
		}
	}
}

func (w *live) object(o fixture.Object) *index.Object {
	w.version++
	return &index.Object{
		ObjectKey: index.ObjectKey{Kind: index.Kind(o.GetObjectKind().GroupVersionKind().Kind), Namespace: o.GetNamespace(), Name: o.GetName()},
		Version:   w.version, Body: o,
	}
}

// change applies one object, as a traced watch event.
func (w *live) change(o fixture.Object) index.Commit {
	x := w.object(o)
	_, span := w.tracer.Start(context.Background(), tracing.SpanWatchEvent, trace.WithAttributes(tracing.AttrObjectName.String(x.ObjectKey.String())))
	defer span.End()
	return w.index.Apply(span.SpanContext(), index.Upsert{Object: x, InOrder: true})
}

// connect connects clients, and waits until each has what can be had.
func (w *live) connect(t *testing.T, nodes ...string) {
	t.Helper()
	for i, node := range nodes {
		w.join(t, node)
		w.settle(t, i+1)
	}
}

// join connects a client.
func (w *live) join(t *testing.T, node string) {
	t.Helper()
	c, err := w.fleet.NewClient(node, w.address, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // its end is the test's
	if err := c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// settle waits until all clients have answered everything.
func (w *live) settle(t *testing.T, clients int) {
	t.Helper()
	eventually(t, func() error {
		streams := w.ads.Status()
		if len(streams) < clients {
			return fmt.Errorf("%d of %d clients", len(streams), clients)
		}
		for _, s := range streams {
			if len(s.Types) < 4 || s.Revision < w.index.Snapshot().Revision() {
				return fmt.Errorf("%s asks for %d types, at revision %d", s.Node, len(s.Types), s.Revision)
			}
			for _, x := range s.Types {
				if x.InFlight > 0 || x.Pending > 0 {
					return fmt.Errorf("%s has %d %s in flight", s.Node, x.InFlight, x.Type)
				}
			}
		}
		return nil
	})
}

func eventually(t *testing.T, condition func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(errors.Join(ctx.Err(), err))
		case <-tick.C:
		}
	}
}

func (w *live) get(path string) (status int, body string) {
	rec := ask(w.server, httptest.NewRequest(http.MethodGet, path, nil))
	b, _ := io.ReadAll(rec.Result().Body) // a recorder's body has no errors
	return rec.Code, string(b)
}

// host gives the first host with TLS, or without.
func (w *live) host(tls bool) *fixture.Host {
	for i := range w.hosts {
		if w.hosts[i].TLS == tls {
			return &w.hosts[i]
		}
	}
	panic("no such host")
}

// named gives a host's object of a kind.
func named[T fixture.Object](h *fixture.Host) T {
	for _, o := range h.Objects {
		if x, ok := o.(T); ok {
			return x
		}
	}
	panic("no such object")
}

// redirect gives where a page leads to.
func (w *live) redirect(path string) string {
	return ask(w.server, httptest.NewRequest(http.MethodGet, path, nil)).Header().Get("Location")
}
