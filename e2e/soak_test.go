//go:build soak

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

// TestSoak lets misfortunes happen at random for a long time, under load on
// hosts that are never touched: no request may fail, and at the end all is as it
// was, in memory as well.
//
//	HOLDFAST_TEST_SOAK  how long; 10m when unset
//	HOLDFAST_TEST_SEED  the seed of an earlier run; otherwise a new one
func TestSoak(t *testing.T) {
	w, restore := behindGate(t)
	defer restore()
	if err := w.Holdfast.Start(); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	s := newSoak(t, w)
	traffic := w.background(t)
	for end := time.Now().Add(s.duration); time.Now().Before(end); {
		s.step(t)
		if r := traffic.Report(); r.Failed > 0 {
			t.Errorf("after %q: %v", s.last, r)
			break
		}
	}
	s.tidy(t)
	unharmed(t, traffic)
	w.sweep(t)
	if u, err := w.Holdfast.Usage(); err != nil || u.RSS > limitHoldfastRSS {
		t.Errorf("holdfast is at %d MB (%v), more than %d MB", u.RSS>>20, err, limitHoldfastRSS>>20)
	}
	t.Logf("%d steps", s.steps)
}

// soak is a run in progress.
type soak struct {
	w        *world
	random   *rand.Rand
	duration time.Duration
	added    []fixture.Host
	steps    int
	last     string
}

func newSoak(t *testing.T, w *world) *soak {
	t.Helper()
	s := &soak{w: w, duration: 10 * time.Minute}
	seed := uint64(time.Now().UnixNano())
	var err error
	if d := os.Getenv("HOLDFAST_TEST_SOAK"); d != "" {
		if s.duration, err = time.ParseDuration(d); err != nil {
			t.Fatalf("HOLDFAST_TEST_SOAK: %v", err)
		}
	}
	if x := os.Getenv("HOLDFAST_TEST_SEED"); x != "" {
		if _, err := fmt.Sscan(x, &seed); err != nil {
			t.Fatalf("HOLDFAST_TEST_SEED: %v", err)
		}
	}
	t.Logf("seed %d (HOLDFAST_TEST_SEED repeats the order of events)", seed)
	s.random = rand.New(rand.NewPCG(seed, 0))
	return s
}

// misfortune is one thing that may happen.
type misfortune struct {
	name string
	do   func(*soak, *testing.T) error
}

var misfortunes = []misfortune{
	{"a host is added", (*soak).add},
	{"a host is added", (*soak).add},
	{"a host is removed", (*soak).remove},
	{"holdfast is killed", func(s *soak, _ *testing.T) error { return s.restart(s.w.Holdfast.Kill) }},
	{"holdfast is stopped", func(s *soak, _ *testing.T) error { return s.restart(s.w.Holdfast.Stop) }},
	{"watches break", func(s *soak, _ *testing.T) error { s.w.cluster.gate.DropWatches(s.resource()); return nil }},
	{"a list is late", func(s *soak, t *testing.T) error { return s.broken(t, s.w.cluster.gate.Hold) }},
	{"a list fails", func(s *soak, t *testing.T) error {
		return s.broken(t, func(r string) { s.w.cluster.gate.Refuse(r, http.StatusServiceUnavailable) })
	}},
	{"a list breaks off", func(s *soak, t *testing.T) error {
		return s.broken(t, func(r string) { s.w.cluster.gate.CutAfter(r, s.random.Int64N(200_000)) })
	}},
	{"a kind is forbidden", func(s *soak, t *testing.T) error {
		return s.broken(t, func(r string) { s.w.cluster.gate.Refuse(r, http.StatusForbidden) })
	}},
}

func (s *soak) step(t *testing.T) {
	t.Helper()
	m := misfortunes[s.random.IntN(len(misfortunes))]
	s.steps++
	s.last = fmt.Sprintf("%d: %s", s.steps, m.name)
	if err := m.do(s, t); err != nil {
		t.Fatalf("%s: %v", s.last, err)
	}
	s.w.settle(t)
}

func (s *soak) resource() string {
	all := []string{"services", "secrets", "endpointslices", "httpproxies", "ingresses", "tlscertificatedelegations"}
	return all[s.random.IntN(len(all))]
}

func (s *soak) add(t *testing.T) error {
	h := s.w.freshHost(s.random.IntN(5) == 0)
	s.added = append(s.added, h)
	return s.w.put(t.Context(), &h)
}

func (s *soak) remove(t *testing.T) error {
	if len(s.added) == 0 {
		return nil
	}
	h := s.added[0]
	s.added = s.added[1:]
	return s.w.remove(t.Context(), &h)
}

func (s *soak) restart(end func() error) error {
	if err := end(); err != nil {
		return err
	}
	return s.w.Holdfast.Start()
}

// broken starts holdfast anew with a fault in one kind, lets something change
// meanwhile, and mends it after a while.
func (s *soak) broken(t *testing.T, fault func(resource string)) error {
	resource := s.resource()
	fault(resource)
	defer s.w.cluster.gate.Pass(resource)
	if err := s.restart(s.w.Holdfast.Kill); err != nil {
		return err
	}
	if err := s.add(t); err != nil {
		return err
	}
	if err := s.remove(t); err != nil {
		return err
	}
	stays(t, "service", time.Duration(1+s.random.IntN(8))*time.Second, func() error { return s.w.Holdfast.Running() })
	return nil
}

func (s *soak) tidy(t *testing.T) {
	t.Helper()
	s.w.cluster.gate.PassAll()
	for i := range s.added {
		if err := s.w.remove(t.Context(), &s.added[i]); err != nil {
			t.Error(err)
		}
	}
	s.w.settle(t)
}
