package translate_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

var update = flag.Bool("update", false, "rewrite the goldens; read the diff")

// world is an index with these rules, and the API server's clock.
type world struct {
	t   *testing.T
	ix  *index.Index
	now index.ResourceVersion
}

// newWorld makes an index of which nothing is observed yet.
func newWorld(t *testing.T, o translate.Options) *world {
	t.Helper()
	ix, err := index.New(translate.New(o))
	if err != nil {
		t.Fatal(err)
	}
	ix.Apply(index.Cause{}, index.SourceID{ID: "s"})
	return &world{t: t, ix: ix, now: 1}
}

// observed makes an index of which every kind is observed, and empty.
func observed(t *testing.T, o translate.Options) *world {
	t.Helper()
	w := newWorld(t, o)
	for i := range kinds.All {
		w.observe(kinds.All[i].Kind)
	}
	return w
}

// observe completes kinds with what is in the index already, and the objects.
func (w *world) observe(list ...index.Kind) {
	w.t.Helper()
	w.now++
	for _, k := range list {
		w.ix.Apply(index.Cause{}, index.Replace{Kind: k, Version: w.now, Objects: slices.Collect(w.ix.Snapshot().Objects(k))})
	}
}

// apply applies objects written in YAML as watch events.
func (w *world) apply(text string) index.Commit {
	w.t.Helper()
	var c index.Commit
	for _, o := range parse(w.t, text) {
		c = w.upsert(o, true)
	}
	return c
}

// see applies objects as those of a list that has not ended.
func (w *world) see(text string) {
	w.t.Helper()
	for _, o := range parse(w.t, text) {
		w.upsert(o, false)
	}
}

func (w *world) upsert(o *index.Object, inOrder bool) index.Commit {
	w.now++
	o.Version = w.now
	return w.ix.Apply(index.Cause{}, index.Upsert{Object: o, InOrder: inOrder})
}

func (w *world) remove(k index.Kind, namespace, name string) index.Commit {
	w.now++
	return w.ix.Apply(index.Cause{}, index.Delete{Key: index.ObjectKey{Kind: k, Namespace: namespace, Name: name}, Version: w.now})
}

// parse reads objects. A line "---" parts them.
func parse(t *testing.T, text string) []*index.Object {
	t.Helper()
	var out []*index.Object
	for _, doc := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		out = append(out, parseOne(t, doc))
	}
	return out
}

func parseOne(t *testing.T, doc string) *index.Object {
	t.Helper()
	var head metav1.TypeMeta
	if err := yaml.Unmarshal([]byte(doc), &head); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
	kind := kinds.Find(index.Kind(head.Kind))
	if kind == nil {
		t.Fatalf("kind %q in:\n%s", head.Kind, doc)
	}
	body := kind.New()
	if err := yaml.UnmarshalStrict([]byte(doc), body); err != nil {
		t.Fatalf("%v in:\n%s", err, doc)
	}
	if body.GetNamespace() == "" && kind.Namespaced {
		body.SetNamespace("ns")
	}
	return &index.Object{ObjectKey: index.ObjectKey{Kind: kind.Kind, Namespace: body.GetNamespace(), Name: body.GetName()}, Body: body}
}

// resource gives a resource by its short type ("RouteConfiguration") and name.
func (w *world) resource(short, name string) *index.Resource {
	for r := range w.resources() {
		if r.ResourceKey.String() == short+" "+name {
			return r
		}
	}
	return nil
}

func (w *world) resources() func(func(*index.Resource) bool) {
	return func(yield func(*index.Resource) bool) {
		s := w.ix.Snapshot()
		for _, t := range translate.New(translate.Options{}).Types() {
			for r := range s.Resources(t.URL) {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// golden compares everything that exists, and the problems, with a file. Only
// names in want are shown in full; "" shows all but the constant ones.
func (w *world) golden(file string, hide ...string) {
	w.t.Helper()
	var b bytes.Buffer
	for r := range w.resources() {
		if slices.Contains(hide, shortKey(r)) || slices.Contains(hide, strings.Fields(shortKey(r))[0]) {
			continue
		}
		fmt.Fprintf(&b, "# %s\n", shortKey(r))
		b.Write(show(w.t, r))
	}
	for _, p := range w.ix.Snapshot().Problems() {
		fmt.Fprintf(&b, "# %s: %s %s %s/%s: %s\n", p.Severity, p.Object, p.Field, p.Type, p.Reason, p.Message)
	}
	compare(w.t, filepath.Join("testdata", file), b.Bytes())
}

func shortKey(r *index.Resource) string { return r.ResourceKey.String() }

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; got:\n%s", file, got)
	}
}

// show gives a resource's message as YAML.
func show(t *testing.T, r *index.Resource) []byte {
	t.Helper()
	m, err := translate.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		if err := v.ValidateAll(); err != nil {
			t.Errorf("%s: Envoy would reject it: %v", r.ResourceKey, err)
		}
	}
	// Names as in the protos: what Envoy's documentation uses.
	j, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	y, err := yaml.JSONToYAML(j)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// problems gives what is said of one object: severity, field, type/reason and
// message.
func (w *world) problems(name string) []string {
	var out []string
	for _, p := range w.ix.Snapshot().Problems() {
		if p.Object.Name == name {
			out = append(out, fmt.Sprintf("%s %s %s/%s: %s", p.Severity, p.Field, p.Type, p.Reason, p.Message))
		}
	}
	return out
}
