package index_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

var seed = flag.Uint64("seed", 0, "run the metamorphic test with this seed alone")

// TestChangesInAnyOrder: whatever the history, the index is that which is built at
// once from what there is in the end. It prints the seed and the history.
func TestChangesInAnyOrder(t *testing.T) {
	seeds := []uint64{*seed}
	if *seed == 0 {
		seeds = nil
		for s := range uint64(300) {
			seeds = append(seeds, s+1)
		}
	}
	for _, s := range seeds {
		h := &history{rand: rand.New(rand.NewPCG(s, 0)), objects: map[index.ObjectKey]string{}, observed: map[index.Kind]bool{}}
		ix := indextest.New()
		for step := range 60 {
			batch := h.batch()
			c := apply(ix, indextest.Changes(strings.Join(batch, "\n"))...)
			if most := 8 * len(h.objects) * len(batch); len(c.Derivations) > most+20 {
				t.Fatalf("seed %d: %d runs for\n%s", s, len(c.Derivations), strings.Join(batch, "\n"))
			}
			if step%10 == 9 {
				compare(t, s, h, ix.Snapshot())
			}
		}
	}
}

func compare(t *testing.T, seed uint64, h *history, got *index.Snapshot) {
	t.Helper()
	fresh := indextest.New()
	apply(fresh, indextest.Changes(h.atOnce())...)
	want := fresh.Snapshot()
	for _, f := range []func(*index.Snapshot) string{contents, func(s *index.Snapshot) string { return sortedProblems(s) }} {
		if a, b := f(got), f(want); a != b {
			t.Fatalf("seed %d (go test -run ChangesInAnyOrder -seed %d)\n%s\nby changes:\n%s\nat once:\n%s", seed, seed, strings.Join(h.lines, "\n"), a, b)
		}
	}
}

// contents tells what may not depend on the history: bodies, references, needs and
// the kinds of the vector; not the versions in it.
func contents(s *index.Snapshot) string {
	var b strings.Builder
	for _, spec := range (indextest.Rules{}).Types() {
		for r := range s.Resources(spec.URL) {
			refs := shortKeys(r.Refs)
			fmt.Fprintf(&b, "%s %q %v %v", shortKey(r.ResourceKey), r.Body, refs, r.ClosedWorld)
			for _, basis := range r.Provenance {
				if basis.Read { // who demanded it, and so what was found of those kinds, is history
					fmt.Fprintf(&b, " %s=%d", basis.Kind, basis.Need)
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func sortedProblems(s *index.Snapshot) string {
	lines := strings.Split(problemLines(s.Problems()), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// history makes random changes and keeps what there is.
type history struct {
	rand     *rand.Rand
	version  int
	objects  map[index.ObjectKey]string // its line without the kind
	observed map[index.Kind]bool
	lines    []string
}

var toyKinds = []index.Kind{indextest.Host, indextest.Path, indextest.Svc, indextest.Slice, indextest.Cert}

func (h *history) batch() []string {
	var out []string
	for range 1 + h.rand.IntN(3) {
		out = append(out, h.step())
	}
	h.lines = append(h.lines, strings.Join(out, "\n"), "--")
	return out
}

func (h *history) step() string {
	k := toyKinds[h.rand.IntN(len(toyKinds))]
	switch h.rand.IntN(12) {
	case 0, 1:
		return h.list(k)
	case 2, 3, 4:
		return h.remove(k)
	case 5:
		return fmt.Sprintf("bookmark %s @%d", k, h.version)
	}
	h.version++
	line := fmt.Sprintf("%s @%d", h.object(k), h.version)
	name := strings.Fields(line)[0]
	h.objects[index.ObjectKey{Kind: k, Name: name}] = line
	if !h.observed[k] || h.rand.IntN(4) == 0 {
		return "eager " + string(k) + " " + line
	}
	return string(k) + " " + line
}

func (h *history) list(k index.Kind) string {
	h.version++
	h.observed[k] = true
	line := fmt.Sprintf("list %s @%d", k, h.version)
	for _, key := range h.keys(k) {
		if h.rand.IntN(5) == 0 { // gone while nobody watched
			delete(h.objects, key)
			continue
		}
		line += "; " + h.objects[key]
	}
	return line
}

func (h *history) remove(k index.Kind) string {
	h.version++
	keys := h.keys(k)
	if len(keys) == 0 {
		return fmt.Sprintf("bookmark %s @%d", k, h.version)
	}
	key := keys[h.rand.IntN(len(keys))]
	delete(h.objects, key)
	return fmt.Sprintf("delete %s %s @%d", k, key.Name, h.version)
}

func (h *history) keys(k index.Kind) []index.ObjectKey {
	var out []index.ObjectKey
	for key := range h.objects {
		if key.Kind == k {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b index.ObjectKey) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (h *history) object(k index.Kind) string {
	n := func(most int) int { return h.rand.IntN(most) }
	switch k {
	case indextest.Host:
		line := fmt.Sprintf("h%d fqdn=f%d svc=s%d,s%d age=%d", n(4), n(3), n(3), n(3), n(4))
		if n(2) == 0 {
			line += fmt.Sprintf(" cert=c%d", n(2))
		}
		if n(8) == 0 {
			line += " invalid=yes"
		}
		return line
	case indextest.Path:
		return fmt.Sprintf("p%d fqdn=f%d svc=s%d", n(3), n(3), n(3))
	case indextest.Svc:
		return fmt.Sprintf("s%d port=%d", n(3), n(3))
	case indextest.Slice:
		return fmt.Sprintf("e%d of=s%d addr=%d", n(4), n(3), n(5))
	default:
		return fmt.Sprintf("c%d pem=%d", n(2), n(3))
	}
}

// atOnce gives everything as one batch.
func (h *history) atOnce() string {
	var out []string
	for _, k := range toyKinds {
		line := fmt.Sprintf("list %s @%d", k, h.version)
		for _, key := range h.keys(k) {
			if h.observed[k] {
				line += "; " + h.objects[key]
			} else {
				out = append(out, "eager "+string(k)+" "+h.objects[key])
			}
		}
		if h.observed[k] {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
