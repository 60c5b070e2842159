package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/holdfast-xds/holdfast/e2e/backend"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// TestSwaps changes, again and again, what a host in use rests on: each time the
// new must be in place before the old goes, so no request may fail.
//
//	HOLDFAST_TEST_SWAPS  how long the flipping takes; 20s when unset. The others
//	                     take a quarter of it.
func TestSwaps(t *testing.T) {
	s := inSmall(t)
	all := durationOf(t, "HOLDFAST_TEST_SWAPS", 20*time.Second)
	for _, c := range []struct {
		name  string
		every time.Duration
		swap  func(*testing.T, *swap)
		share time.Duration
		known string
	}{
		{"a host flips between two Services", time.Second, flip, 1, ""},
		{"a Service is renamed", 500 * time.Millisecond, renamed, 4, ""},
		{"a cluster's time-out changes", 250 * time.Millisecond, timeout, 4, ""},
		{"a cluster's protocol changes", 500 * time.Millisecond, protocol, 4, ""},
		{"a Service's port is renamed", 500 * time.Millisecond, portRenamed, 4, portGap},
		{"the Pods roll", 500 * time.Millisecond, roll, 4, ""},
		{"an Ingress and an HTTPProxy trade a host", 500 * time.Millisecond, trade, 4, ""},
		{"a domain moves between HTTPProxies", 500 * time.Millisecond, move, 4, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.known != "" && os.Getenv("HOLDFAST_TEST_KNOWN") == "" {
				t.Skip(c.known)
			}
			swapping(t, s, all/c.share, c.every, c.swap)
		})
	}
}

// portGap is a known fault; HOLDFAST_TEST_KNOWN=1 may show it, on a busy machine.
const portGap = "not as promised yet: a cluster that gets its endpoints under another name answered 503 (no healthy upstream) for some milliseconds, once in 33 changes"

// swap is one run: a host of its own that is asked for all the time.
type swap struct {
	*small
	host fixture.Host
	// round counts from 0.
	round int
	// state of the kind of swap, from one round to the next.
	old      fixture.Host
	backends []*backend.Backend
	draining []chan error
}

// swapLoad is the load on the host that is swapped.
const swapLoad = 200

func swapping(t *testing.T, s *small, d, every time.Duration, round func(*testing.T, *swap)) {
	w := &swap{small: s, host: ownHost(s.freshHost(false))}
	if err := s.put(t.Context(), &w.host); err != nil {
		t.Fatal(err)
	}
	w.old = w.host
	s.served(t, &w.host)
	s.settle(t)
	c := s.Client([]load.Target{{Host: w.host.FQDN, Path: "/"}})
	c.Concurrency, c.Rate, c.FreshPercent = 8, swapLoad, 30
	traffic := load.Start(t.Context(), c)
	answered(t, traffic, 20)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end) && traffic.Report().Failed == 0; w.round++ {
		round(t, w)
		<-tick.C
	}
	s.settle(t)
	unharmed(t, traffic)
	t.Logf("%d rounds", w.round)
	w.tidy(t)
}

func (w *swap) tidy(t *testing.T) {
	t.Helper()
	for _, done := range w.draining {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, b := range w.backends {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	w.try(t, w.remove(context.Background(), &w.old))
	w.try(t, w.remove(context.Background(), &w.host))
}

func (s *small) try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// served waits until a host is.
func (s *small) served(t *testing.T, h *fixture.Host) {
	t.Helper()
	watch := s.watch(t, h)
	defer watch.Stop()
	until(t, watch, "200")
}

// ownHost strips a host to one route to its own Service, with one EndpointSlice.
func ownHost(h fixture.Host) fixture.Host {
	out := h
	out.Objects, out.Probes = nil, h.Probes[:1]
	slices := 0
	for _, o := range h.Objects {
		switch o := o.(type) {
		case *discoveryv1.EndpointSlice:
			if slices++; slices > 1 {
				continue
			}
		case *contourv1.HTTPProxy:
			if o.Spec.VirtualHost == nil {
				continue // a child
			}
			o.Spec.Includes, o.Spec.Routes = nil, o.Spec.Routes[:1]
		}
		out.Objects = append(out.Objects, o)
	}
	return out
}

// part finds the object of a type among a host's.
func part[T fixture.Object](h *fixture.Host) T {
	for _, o := range h.Objects {
		if x, ok := o.(T); ok {
			return x
		}
	}
	panic("the host has none")
}

// withProxy gives the host with its HTTPProxy changed.
func withProxy(h fixture.Host, change func(*contourv1.HTTPProxy)) *contourv1.HTTPProxy {
	p := part[*contourv1.HTTPProxy](&h).DeepCopy()
	change(p)
	return p
}

// flip: between its own Service and the one that all in the namespace share.
func flip(t *testing.T, w *swap) {
	p := withProxy(w.host, func(p *contourv1.HTTPProxy) {
		if w.round%2 == 0 {
			p.Spec.Routes[0].Services[0].Name = "assets"
		}
	})
	w.try(t, w.cluster.Apply(t.Context(), p))
}

// renamed: the new Service with its endpoints is written, the HTTPProxy points
// to it, and when that is so the old one goes.
func renamed(t *testing.T, w *swap) {
	next := w.old
	name := fmt.Sprintf("%s-r%d", w.host.Name, w.round)
	service := part[*corev1.Service](&w.old).DeepCopy()
	slice := part[*discoveryv1.EndpointSlice](&w.old).DeepCopy()
	service.Name, slice.Name = name, name
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	proxy := withProxy(w.old, func(p *contourv1.HTTPProxy) { p.Spec.Routes[0].Services[0].Name = name })
	next.Objects = []fixture.Object{service, slice, proxy}
	w.try(t, w.put(t.Context(), &next))
	w.seen(t, next.Objects...)
	w.try(t, w.cluster.Delete(t.Context(), part[*corev1.Service](&w.old)))
	w.try(t, w.cluster.Delete(t.Context(), part[*discoveryv1.EndpointSlice](&w.old)))
	w.old = next
}

// seen waits until holdfast has seen objects as they are now, and told Envoy. The
// kinds come by watches of their own, in no order between them: who deletes the
// old in the moment of writing the new may have it seen the other way round.
func (w *swap) seen(t *testing.T, objects ...fixture.Object) {
	t.Helper()
	written := map[string]uint64{}
	for _, o := range objects {
		v, err := w.cluster.Version(t.Context(), o)
		w.try(t, err)
		written[o.GetObjectKind().GroupVersionKind().Kind] = v
	}
	_, err := w.Holdfast.Await(t.Context(), "sight of it", patience, func(s *status) error {
		for kind, v := range written {
			if at, err := strconv.ParseUint(s.Kind(kind).Frontier, 10, 64); err != nil || at < v {
				return fmt.Errorf("%s is at %q of %d", kind, s.Kind(kind).Frontier, v)
			}
		}
		return s.Quiet(rig.Node)
	})
	w.try(t, err)
}

func timeout(t *testing.T, w *swap) {
	p := withProxy(w.host, func(p *contourv1.HTTPProxy) {
		d := fmt.Sprintf("%ds", 10+w.round%5)
		p.Spec.Routes[0].TimeoutPolicy = &contourv1.TimeoutPolicy{Response: d, IdleConnection: d}
	})
	w.try(t, w.cluster.Apply(t.Context(), p))
}

// protocol: the backends speak both, on one port.
func protocol(t *testing.T, w *swap) {
	s := part[*corev1.Service](&w.host).DeepCopy()
	if w.round%2 == 0 {
		s.Annotations = map[string]string{"projectcontour.io/upstream-protocol.h2c": "80"}
	}
	w.try(t, w.cluster.Apply(t.Context(), s))
}

// portRenamed: the cluster keeps its name, and its endpoints come by another: a
// change of CDS with EDS behind it. The EndpointSlice has both names.
func portRenamed(t *testing.T, w *swap) {
	names := []string{"http", "renamed"}
	if w.round == 0 {
		slice := part[*discoveryv1.EndpointSlice](&w.host).DeepCopy()
		second := slice.Ports[0]
		second.Name = new(names[1])
		slice.Ports = append(slice.Ports, second)
		w.try(t, w.cluster.Apply(t.Context(), slice))
		w.seen(t, slice)
	}
	s := part[*corev1.Service](&w.host).DeepCopy()
	s.Spec.Ports[0].Name = names[(w.round+1)%2]
	w.try(t, w.cluster.Apply(t.Context(), s))
}

// podGrace is how long a Pod serves after it was taken out, as preStop hooks let it.
const podGrace = 3 * time.Second

// roll: a new Pod comes, the oldest of two is taken out, and ends a little later.
func roll(t *testing.T, w *swap) {
	any := netip.AddrPortFrom(w.IP, 0)
	b, err := backend.Start(fmt.Sprintf("pod-%d", w.round), any)
	w.try(t, err)
	w.backends = append(w.backends, b)
	slice := part[*discoveryv1.EndpointSlice](&w.host).DeepCopy()
	if len(w.backends) > 2 {
		w.drain(w.backends[0])
		w.backends = w.backends[1:]
	}
	// Each Pod has a port of its own here, so each has a slice of its own.
	for i := range 2 {
		if i >= len(w.backends) {
			break
		}
		one := slice.DeepCopy()
		one.Name = fmt.Sprintf("%s-%d", slice.Name, (w.round-len(w.backends)+1+i)%2)
		one.Ports[0].Port = new(int32(w.backends[i].Addrs()[0].Port()))
		w.try(t, w.cluster.Apply(t.Context(), one))
		w.old.Objects = append(w.old.Objects, one)
	}
	if w.round == 0 {
		w.try(t, w.cluster.Delete(t.Context(), slice))
	}
}

func (w *swap) drain(b *backend.Backend) {
	done := make(chan error, 1)
	w.draining = append(w.draining, done)
	go func() {
		<-time.After(podGrace)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		done <- b.Drain(ctx)
	}()
}

// trade: the new owner is written, then the old one goes.
func trade(t *testing.T, w *swap) {
	in := asIngress(w.host, w.host.FQDN)
	proxy := part[*contourv1.HTTPProxy](&w.host)
	if w.round%2 == 0 {
		w.try(t, w.put(t.Context(), &in))
		w.seen(t, in.Objects...)
		w.try(t, w.cluster.Delete(t.Context(), proxy))
	} else {
		w.try(t, w.cluster.Apply(t.Context(), proxy))
		w.seen(t, proxy)
		w.try(t, w.remove(t.Context(), &in))
	}
	w.old.Objects = append(w.old.Objects[:len(w.host.Objects):len(w.host.Objects)], in.Objects...)
}

// move: another HTTPProxy claims the domain, which it may not have, until the
// owner is gone. Same kind, one watch: no need to wait in between.
func move(t *testing.T, w *swap) {
	next := withProxy(w.old, func(p *contourv1.HTTPProxy) { p.Name = fmt.Sprintf("%s-m%d", w.host.Name, w.round) })
	w.try(t, w.cluster.Apply(t.Context(), next))
	w.try(t, w.cluster.Delete(t.Context(), part[*contourv1.HTTPProxy](&w.old)))
	w.old.Objects = []fixture.Object{next}
}

// durationOf reads one from the environment.
func durationOf(t *testing.T, variable string, otherwise time.Duration) time.Duration {
	t.Helper()
	v := os.Getenv(variable)
	if v == "" {
		return otherwise
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return d
}
