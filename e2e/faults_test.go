//go:build faults

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/envoy"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/kube"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// TestFaults brings about one fault after the other, under load, and writes down
// what came of each.
//
//	HOLDFAST_TEST_OUTAGE  how long the long ones last; 60s when unset
//	HOLDFAST_FAULTS_PAGE  where the table goes; nowhere when unset
//	HOLDFAST_FAULTS_CODE  the commit that the table is of
func TestFaults(t *testing.T) {
	m := &matrix{small: inSmall(t), outage: durationOf(t, "HOLDFAST_TEST_OUTAGE", time.Minute)}
	var err error
	if m.second, err = kube.OpenGate(m.cluster.Cluster); err != nil {
		t.Fatal(err)
	}
	defer m.second.Close()
	for _, f := range faultsOf() {
		t.Run(f.name, func(t *testing.T) { m.lines = append(m.lines, m.measure(t, f)) })
	}
	page := os.Getenv("HOLDFAST_FAULTS_PAGE")
	if page == "" {
		t.Logf("\n%s", m.table())
		return
	}
	if err := os.WriteFile(page, m.page(os.Getenv("HOLDFAST_FAULTS_CODE")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// matrix is a run in progress.
type matrix struct {
	*small
	outage time.Duration
	second *kube.Gate // of another replica
	lines  []*line
}

// misfit is a line of the matrix.
type misfit struct {
	name string
	// run brings the fault about, looks at what is said of it, and ends it.
	run func(*testing.T, *line)
	// meant says why requests fail or resources go, where that is as it must be.
	meant string
	// load's targets; all when nil.
	targets func(*matrix) []load.Target
	timeout time.Duration
}

// line is what came of a fault.
type line struct {
	*matrix
	misfit
	report    load.Report
	removed   map[envoy.Kind]int
	says      []string
	ended     time.Time
	recovered time.Duration
	canaries  []fixture.Host
	server    *holdfast.Server // that Envoy is connected to in the end
	broken    bool
	// replaces: clusters with other options have other names, so that some come and
	// go; what counts is what was there before.
	replaces bool
}

// faultLoad is the load under which things happen.
const faultLoad = 200

func (m *matrix) measure(t *testing.T, f misfit) *line {
	l := &line{matrix: m, misfit: f, server: m.Holdfast}
	m.settle(t)
	before := m.moment(t)
	c := m.Client(m.targets)
	if f.targets != nil {
		c.Targets = f.targets(m)
	}
	c.Concurrency, c.Rate, c.FreshPercent, c.Timeout = 8, faultLoad, 30, f.timeout
	traffic := load.Start(t.Context(), c)
	answered(t, traffic, 50)
	f.run(t, l)
	l.recover(t)
	answered(t, traffic, 50)
	l.report = traffic.Stop()
	l.count(m.moment(t), before)
	l.judge(t)
	m.mend(t, l)
	l.broken = t.Failed()
	return l
}

// recover measures how long it takes, from the fault's end on, until all is as
// without it: what was written meanwhile is served, all lists are complete and
// Envoy has all.
func (l *line) recover(t *testing.T) {
	t.Helper()
	for i := range l.canaries {
		l.served(t, &l.canaries[i])
	}
	_, err := l.server.Await(t.Context(), "recovery", 2*patience, func(s *status) error {
		if words := wordsOf(s); words != nil {
			return fmt.Errorf("it still says %v", words)
		}
		return errors.Join(s.Lists(), s.Quiet(rig.Node))
	})
	if err != nil {
		t.Errorf("%v\n%s", err, l.server.Tail(10))
	}
	l.recovered = time.Since(l.ended)
}

func (l *line) count(now, before rig.Moment) {
	l.removed = map[envoy.Kind]int{}
	for _, k := range envoy.Kinds {
		n := now.Removed(before, k)
		if l.replaces {
			n = len(now.Holdings.Lost(before.Holdings, k))
		}
		if n > 0 {
			l.removed[k] = n
		}
	}
}

func (l *line) judge(t *testing.T) {
	t.Helper()
	t.Logf("load: %v", l.report)
	t.Logf("removed %v, recovered after %v; said: %s", l.removed, l.recovered.Round(time.Millisecond), strings.Join(l.says, "; "))
	if l.meant == "" && (l.report.Failed > 0 || len(l.removed) > 0) {
		t.Errorf("%d requests failed, removed: %v", l.report.Failed, l.removed)
	}
	if l.report.Requests == 0 {
		t.Error("no requests")
	}
}

// mend brings all back to where it was.
func (m *matrix) mend(t *testing.T, l *line) {
	t.Helper()
	m.cluster.gate.PassAll()
	m.second.PassAll()
	m.try(t, m.cluster.AllowReading(t.Context()))
	if m.Holdfast.Running() != nil {
		m.try(t, m.Holdfast.Start())
	}
	for i := range l.canaries {
		m.try(t, m.remove(t.Context(), &l.canaries[i]))
	}
}

// canary adds a host; it must be served at the latest when the fault is over.
func (l *line) canary(t *testing.T) *fixture.Host {
	t.Helper()
	h := l.freshHost(false)
	l.try(t, l.put(t.Context(), &h))
	l.canaries = append(l.canaries, h)
	return &h
}

// restart ends holdfast by SIGKILL and starts it again.
func (l *line) restart(t *testing.T) {
	t.Helper()
	l.try(t, l.Holdfast.Kill())
	l.try(t, l.Holdfast.Start())
}

// lasts lets time go by while the fault lasts.
func (l *line) lasts(d time.Duration) { <-time.After(d) }

// over notes the fault's end.
func (l *line) over() { l.ended = time.Now() }

// hears waits until the status tells of trouble with the kinds, or with any when
// there are none given.
func (l *line) hears(t *testing.T, kinds ...string) {
	t.Helper()
	_, err := l.server.Await(t.Context(), "word of "+strings.Join(kinds, ", "), 30*time.Second, func(s *status) error {
		for _, k := range kinds {
			// One that was not asked for yet is no news.
			if k := s.Kind(k); k.Error == "" && k.State != "absent" {
				return fmt.Errorf("nothing is said of %s but %q", k.Kind, k.State)
			}
		}
		if len(kinds) == 0 && len(wordsOf(s)) == 0 {
			return errors.New("nothing is said")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
		l.says = append(l.says, "nothing")
	}
}

// listen keeps what the status says now, if anything.
func (l *line) listen(t *testing.T) {
	t.Helper()
	s, err := l.server.Status(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	for _, w := range wordsOf(s) {
		if !slices.Contains(l.says, w) {
			l.says = append(l.says, w)
		}
	}
}

// troubleOf is what kinds with the same trouble have in common; empty when all
// is well.
func troubleOf(k holdfast.Kind) string {
	if k.State == "observed" && k.Error == "" {
		return ""
	}
	return k.State + " " + plain(k)
}

var streamID = regexp.MustCompile(`stream ID \d+`)

// plain gives a kind's error without what differs from kind to kind.
func plain(k holdfast.Kind) string {
	for _, w := range watched {
		if w.kind == k.Kind {
			name := regexp.MustCompile(`\b` + w.resource + `(\.[a-z0-9.]+[a-z0-9])?`)
			return streamID.ReplaceAllString(name.ReplaceAllString(k.Error, "RESOURCE"), "stream ID N")
		}
	}
	return k.Error
}

func short(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}

// wordsOf gives what a status says is wrong: kinds with the same trouble
// together, then what is withheld.
func wordsOf(s *status) []string {
	var order []string
	kinds, verbatim := map[string][]string{}, map[string]string{}
	for _, k := range s.Kinds {
		trouble := troubleOf(k)
		if trouble == "" {
			continue
		}
		if kinds[trouble] == nil {
			order = append(order, trouble)
		}
		kinds[trouble] = append(kinds[trouble], k.Kind)
		verbatim[trouble] = strings.TrimSpace(k.State + " " + short(k.Error)) // one stands for all
	}
	var out []string
	for _, trouble := range order {
		out = append(out, strings.Join(kinds[trouble], ", ")+": "+verbatim[trouble])
	}
	held := map[string]int{}
	for _, w := range s.Withheld {
		var missing []string
		for _, k := range w.Missing {
			missing = append(missing, k.Kind)
		}
		held[fmt.Sprintf("%s withheld: %s %s", w.Action, short(w.Reason), strings.Join(missing, ", "))] += w.Count
	}
	for _, what := range sortedKeys(held) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s", held[what], what)))
	}
	return out
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	var out []K
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// every does something again and again for a while.
func every(ctx context.Context, pause, d time.Duration, do func(i int) error) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for end, i := time.Now().Add(d), 0; time.Now().Before(end); i++ {
		if err := do(i); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
