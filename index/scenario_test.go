package index_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// TestScenarios runs the scripts in testdata/scenarios: what changes do to kinds,
// objects, resources, tombstones and problems. Commands:
//
//	apply           applies the changes in the body, as one commit
//	kind NAME       state, frontier, events, listed, objects
//	objects KIND    what the index holds of a kind
//	resources       live resources with their token vectors and open needs
//	tombstones      buried resources with the kinds that their removal needs
//	problems        what users are told
//	prove T/N [V]   whether T/N, held in version V (or a foreign one), is proven absent
//	pass R REV      reader R is done with everything up to REV; leave R
//	changes REV     the log since REV
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		w := &world{t: t, ix: indextest.New()}
		datadriven.RunTest(t, path, w.run)
	})
}

type world struct {
	t  *testing.T
	ix *index.Index
}

func (w *world) run(_ *testing.T, d *datadriven.TestData) string {
	s := w.ix.Snapshot()
	arg := func(i int) string {
		if i < len(d.CmdArgs) {
			return d.CmdArgs[i].Key
		}
		return ""
	}
	switch d.Cmd {
	case "apply":
		return describe(w.ix.Apply(index.Cause{}, indextest.Changes(d.Input)...))
	case "kind":
		return kindLine(s.Kind(index.Kind(arg(0))))
	case "objects":
		return objectLines(s, index.Kind(arg(0)))
	case "resources":
		return resourceLines(s)
	case "tombstones":
		return tombstoneLines(s)
	case "problems":
		return problemLines(s.Problems())
	case "prove":
		return prove(s, key(arg(0)), arg(1))
	case "pass":
		rev, _ := strconv.ParseUint(arg(1), 10, 64)
		w.ix.Pass(arg(0), index.Revision(rev))
		return ""
	case "leave":
		w.ix.Leave(arg(0))
		return ""
	case "changes":
		rev, _ := strconv.ParseUint(arg(0), 10, 64)
		return logLines(s, index.Revision(rev))
	}
	w.t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

// describe tells a commit in a line for each part that isn't empty.
func describe(c index.Commit) string {
	var b strings.Builder
	fmt.Fprintf(&b, "revision %d\n", c.Revision)
	if len(c.Derivations) > 0 {
		fmt.Fprintf(&b, "ran %s\n", joined(c.Derivations))
	}
	if len(c.Changed) > 0 {
		fmt.Fprintf(&b, "changed %s\n", joined(shortKeys(c.Changed)))
	}
	if len(c.Observed) > 0 {
		fmt.Fprintf(&b, "observed %s\n", joined(c.Observed))
	}
	b.WriteString(problemLines(c.Problems))
	return b.String()
}

func kindLine(k *index.KindRow) string {
	return fmt.Sprintf("%s frontier=%s events=%d listed=%d objects=%d complete=%v", k.State, k.Frontier, k.Events, k.Listed, k.Objects, k.Complete())
}

func objectLines(s *index.Snapshot, k index.Kind) string {
	var b strings.Builder
	for o := range s.Objects(k) {
		fmt.Fprintf(&b, "%s @%d\n", o.Name, o.Version)
	}
	return b.String()
}

func resourceLines(s *index.Snapshot) string {
	var b strings.Builder
	for _, spec := range (indextest.Rules{}).Types() {
		for r := range s.Resources(spec.URL) {
			fmt.Fprintf(&b, "%s %q %s", shortKey(r.ResourceKey), r.Body, vector(s, r))
			if open := s.Incomplete(r.Needs(index.NeedMissing)); len(open) > 0 {
				fmt.Fprintf(&b, " held back for %s", lackNames(open))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func tombstoneLines(s *index.Snapshot) string {
	var b strings.Builder
	for _, spec := range (indextest.Rules{}).Types() {
		for g := range s.Tombstones(spec.URL) {
			fmt.Fprintf(&b, "%s needs %s\n", shortKey(g.Last.ResourceKey), joined(g.Needs(0xff)))
		}
	}
	return b.String()
}

func problemLines(list []index.Problem) string {
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "%s: %s: %s\n", p.Severity, p.Object, p.Message)
	}
	return b.String()
}

func prove(s *index.Snapshot, k index.ResourceKey, version string) string {
	p, lacks := s.ProveNonexistent(k)
	if version == "foreign" {
		p, lacks = s.ProveAbsent(k, s.ParseToken("h1.0.elsewhere.H:zz"))
	} else if version != "" {
		p, lacks = s.ProveAbsent(k, s.ParseToken("h1.0.s."+version))
	}
	if p.Valid() {
		return fmt.Sprintf("proven at %d", p.Revision())
	}
	return "not proven: " + lackNames(lacks)
}

func logLines(s *index.Snapshot, since index.Revision) string {
	entries, ok := s.Changes(since)
	if !ok {
		return "the log does not reach back"
	}
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%d %s completeness=%v\n", e.Revision, joined(shortKeys(e.Changed)), e.Completeness)
	}
	return b.String()
}

func vector(s *index.Snapshot, r *index.Resource) string {
	token := s.Token(r)
	return token[strings.LastIndexByte(token, '.')+1:]
}

func lackNames(lacks []index.Lack) string {
	out := make([]string, 0, len(lacks))
	for _, l := range lacks {
		out = append(out, fmt.Sprintf("%s(%s<%d)", l.Kind, l.Frontier, l.Held))
	}
	return strings.Join(out, " ")
}

func joined[S ~string](list []S) string {
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = string(x)
	}
	return strings.Join(out, " ")
}

// Short names of the types in scripts.
var typeNames = map[string]string{
	"cluster": indextest.Cluster, "endpoints": indextest.Endpoints, "listener": indextest.Listener,
	"scope": indextest.Scope, "routes": indextest.Routes, "secret": indextest.Secret,
}

func key(short string) index.ResourceKey {
	typ, name, _ := strings.Cut(short, "/")
	return index.ResourceKey{Type: typeNames[typ], Name: name}
}

func shortKey(k index.ResourceKey) string {
	for short, url := range typeNames {
		if url == k.Type {
			return short + "/" + k.Name
		}
	}
	return k.String()
}

func shortKeys(list []index.ResourceKey) []string {
	out := make([]string, 0, len(list))
	for _, k := range list {
		out = append(out, shortKey(k))
	}
	slices.Sort(out)
	return out
}
