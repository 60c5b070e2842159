package k8swatch

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noRules makes nothing of anything.
type noRules struct{}

func (noRules) Kinds() []index.KindSpec {
	var out []index.KindSpec
	for _, w := range kinds.All {
		out = append(out, w.KindSpec)
	}
	return out
}
func (noRules) Types() []index.TypeSpec                             { return nil }
func (noRules) Prepare(*index.Object)                               {}
func (noRules) Subjects(*index.Object) []index.DerivationID         { return nil }
func (noRules) Roots() []index.DerivationID                         { return nil }
func (noRules) Rank(index.DerivationID) int                         { return 0 }
func (noRules) Derive(_ index.DerivationID, _ any, _ *index.Reader) {}

// world is a source under test: the index that it fills, what was applied to
// it, and the log.
type world struct {
	t  *testing.T
	ix *index.Index

	mu      sync.Mutex
	applied [][]index.Change
	log     bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ix, err := index.New(noRules{})
	if err != nil {
		t.Fatal(err)
	}
	return &world{t: t, ix: ix}
}

// Apply implements Sink.
func (w *world) Apply(cause index.Cause, changes ...index.Change) index.Commit {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.applied = append(w.applied, changes)
	return w.ix.Apply(cause, changes...)
}

// Write takes the log.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) options() Options {
	return Options{
		Logger:   slog.New(slog.NewTextHandler(w, nil)),
		Debounce: 5 * time.Millisecond, Settle: 60 * time.Millisecond, Rescan: time.Hour,
		RetryMin: 5 * time.Millisecond, RetryMax: 40 * time.Millisecond, Linger: 2 * time.Millisecond,
	}
}

// run starts the source and gives the function that ends it and waits for that.
func (w *world) run(s Source) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// until waits for something to be true of the index.
func (w *world) until(what string, is func(*index.Snapshot) bool) *index.Snapshot {
	w.t.Helper()
	timeout := time.After(10 * time.Second)
	for {
		s := w.ix.Snapshot()
		if is(s) {
			return s
		}
		select {
		case <-w.ix.Changed(s.Revision()):
		case <-timeout:
			w.t.Fatalf("never %s; now:\n%s\nlog:\n%s", what, show(s), w.logged())
		}
	}
}

// untilShown waits for the index to look like this; see show.
func (w *world) untilShown(want string) {
	w.t.Helper()
	want = strings.TrimSpace(want)
	w.until("was it\n"+want, func(s *index.Snapshot) bool { return show(s) == want })
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// since gives the transactions after the first n, without those of states only.
func (w *world) since(n int) [][]index.Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([][]index.Change(nil), w.applied[n:]...)
}

func (w *world) transactions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.applied)
}

// show prints the kinds that have objects or a state worth a word, the objects
// and the source's problems.
func show(s *index.Snapshot) string {
	var b strings.Builder
	for _, k := range s.Kinds() {
		if k.Objects == 0 && k.State == index.Observed {
			continue
		}
		fmt.Fprintf(&b, "%s %s %s:", k.Kind, k.State, k.Frontier)
		for o := range s.Objects(k.Kind) {
			fmt.Fprintf(&b, " %s/%s", o.Namespace, o.Name)
		}
		b.WriteString("\n")
	}
	for _, p := range s.Problems() {
		fmt.Fprintf(&b, "%s %s: %s\n", p.Severity, p.Object, p.Message)
	}
	return strings.TrimSpace(b.String())
}

// kindIs is for until.
func kindIs(kind index.Kind, state index.State) func(*index.Snapshot) bool {
	return func(s *index.Snapshot) bool { return s.Kind(kind).State == state }
}

func allObserved(s *index.Snapshot) bool {
	for _, k := range s.Kinds() {
		if !k.Frontier.Observed {
			return false
		}
	}
	return true
}

func has(s *index.Snapshot, kind index.Kind, ns, name string) bool {
	return s.Object(index.ObjectKey{Kind: kind, Namespace: ns, Name: name}) != nil
}
