package client_test

import (
	"context"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-xds/holdfast/benchmarks/client"
	"github.com/holdfast-xds/holdfast/benchmarks/direct"
	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/delta/ads"
	"github.com/holdfast-xds/holdfast/index"
)

// server serves a source's index on loopback until the test ends, or stop is called.
func server(t *testing.T, s *direct.Source, at string) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ads.New(s.Index, ads.Options{RemovalGrace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer(ads.ServerCodec())
	a.Register(g)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	stop = func() {
		g.Stop()
		a.Wait()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	return l.Addr().String(), stop
}

func source(t *testing.T) (*workload.Workload, *direct.Source) {
	t.Helper()
	s, err := direct.NewSource()
	if err != nil {
		t.Fatal(err)
	}
	w := workload.New(workload.Smallest, workload.Anywhere())
	s.Load(w)
	return w, s
}

func counts(s *index.Snapshot) (out [6]int) {
	for t, url := range client.Types {
		for range s.Resources(url) {
			out[t]++
		}
	}
	return out
}

func await(ctx context.Context, t *testing.T, c *client.Client, s *index.Snapshot) {
	t.Helper()
	for c.Held() != counts(s) {
		if err := c.Broken(); err != nil {
			t.Fatal(err)
		}
		if ctx.Err() != nil {
			t.Fatalf("holds %v of %v", c.Held(), counts(s))
		}
	}
}

// A simulated Envoy is sent everything, is sent an edit, and after a restart of
// the server nothing that it has.
func TestAClientHoldsWhatThereIs(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w, s := source(t)
	address, stop := server(t, s, "127.0.0.1:0")
	fleet := client.NewFleet(ctx)
	defer fleet.Close()
	c, err := fleet.NewClient("one", address, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, c, s.Index.Snapshot())

	c.Forget()
	var keys []client.Key
	for _, e := range []workload.Edit{workload.Route, workload.TLSHost} {
		_, changes := w.Next(e)
		for _, commit := range s.Write(changes) {
			for _, k := range commit.Changed {
				kind, _ := client.TypeOf(k.Type)
				keys = append(keys, fleet.Key(kind, k.Name))
			}
		}
	}
	if _, err := c.Await(ctx, keys); err != nil {
		t.Fatal(err)
	}
	await(ctx, t, c, s.Index.Snapshot())

	stop()
	_ = c.Ended(ctx)
	before := c.Totals()
	_, stop = server(t, s, address)
	defer stop()
	if err := c.Connect(ctx); err != nil {
		t.Fatal(err)
	}
	_, changes := w.Next(workload.Endpoint) // the one thing that it lacks
	c.Forget()
	k := s.Write(changes)[0].Changed[0]
	if _, err := c.Await(ctx, []client.Key{fleet.Key(client.Endpoints, k.Name)}); err != nil {
		t.Fatal(err)
	}
	if d := c.Totals().Minus(before); d.Resources != 1 || d.Removed != 0 {
		t.Errorf("after a restart it was sent %+v, want one resource", d)
	}
}
