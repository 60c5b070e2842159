package index_test

import (
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
)

// toy rules: an A object "a" has a body "b1,b2": resource host/a says which of
// the B objects b1 and b2 were found.
type toy struct{}

const (
	kindA, kindB index.Kind = "A", "B"
	typeT                   = "example/T"
)

func (toy) Kinds() []index.KindSpec {
	return []index.KindSpec{{Kind: kindA, Code: "A", Required: true}, {Kind: kindB, Code: "B"}}
}
func (toy) Types() []index.TypeSpec {
	return []index.TypeSpec{{URL: typeT, Feeds: []index.Kind{kindA, kindB}}}
}
func (toy) Prepare(o *index.Object) { o.Lookups = []string{"name=" + o.Name} }
func (toy) Subjects(o *index.Object) []index.DerivationID {
	if o.Kind == kindA {
		return []index.DerivationID{index.DerivationID("host/" + o.Name)}
	}
	return nil
}
func (toy) Roots() []index.DerivationID    { return nil }
func (toy) Rank(id index.DerivationID) int { return strings.Count(string(id), "/") }
func (toy) Derive(id index.DerivationID, _ any, r *index.Reader) {
	name := strings.TrimPrefix(string(id), "host/")
	as := r.Range(kindA, "name="+name, index.NeedStrict)
	if len(as) == 0 {
		return
	}
	var body []string
	for _, b := range strings.Split(as[0].Body.(string), ",") {
		if o, p := r.Get(kindB, "", b); p == index.Found {
			body = append(body, b+"="+o.Body.(string))
		} else {
			body = append(body, b+"?")
		}
	}
	r.Emit(index.Draft{Type: typeT, Name: name, Body: []byte(strings.Join(body, ";"))})
}

func obj(k index.Kind, name, body string, v index.ResourceVersion) *index.Object {
	return &index.Object{ObjectKey: index.ObjectKey{Kind: k, Name: name}, Version: v, Body: body}
}

func TestChangesRunOnlyTheirReaders(t *testing.T) {
	ix, err := index.New(toy{})
	if err != nil {
		t.Fatal(err)
	}
	ix.Apply(index.Cause{}, index.SourceID{ID: "s"})
	ix.Apply(index.Cause{}, index.Upsert{Object: obj(kindA, "x", "b1,b2", 5)}, index.Upsert{Object: obj(kindA, "y", "b1", 6)})
	k := index.ResourceKey{Type: typeT, Name: "x"}
	r := ix.Snapshot().Resource(k)
	if string(r.Body) != "b1?;b2?" || len(r.Needs(index.NeedMissing)) != 1 {
		t.Fatalf("got %s %+v", r.Body, r.Provenance)
	}
	c := ix.Apply(index.Cause{}, index.Upsert{Object: obj(kindB, "b2", "two", 7)})
	if len(c.Derivations) != 1 || c.Derivations[0] != "host/x" {
		t.Fatalf("ran %v", c.Derivations)
	}
	if c = ix.Apply(index.Cause{}, index.Replace{Kind: kindB, Objects: []*index.Object{obj(kindB, "b2", "two", 7)}, Version: 10}); len(c.Observed) != 1 {
		t.Fatalf("observed %v", c.Observed)
	}
	if got := ix.Snapshot().Token(ix.Snapshot().Resource(k)); !strings.HasSuffix(got, ".s.A:5,B:a") {
		t.Fatalf("token %s", got)
	}
	c = ix.Apply(index.Cause{}, index.Replace{Kind: kindA, Version: 11})
	if len(c.Changed) != 2 || ix.Snapshot().Resource(k) != nil {
		t.Fatalf("changed %v", c.Changed)
	}
}
