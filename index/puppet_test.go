package index_test

import (
	"testing"

	"github.com/holdfast-xds/holdfast/index"
)

// puppet is a set of rules made of functions, for what the toy ingress has no use
// for: two kinds, one type, and derivations that do what a test says.
type puppet struct {
	derive  map[index.DerivationID]func(*index.Reader)
	roots   []index.DerivationID
	subject func(*index.Object) []index.DerivationID
	rank    map[index.DerivationID]int
	kinds   []index.KindSpec
}

const (
	kindA, kindB index.Kind = "A", "B"
	typeT                   = "example/T"
)

func (p puppet) Kinds() []index.KindSpec {
	if p.kinds != nil {
		return p.kinds
	}
	return []index.KindSpec{{Kind: kindA, Code: "A", Required: true}, {Kind: kindB, Code: "B"}}
}

func (puppet) Types() []index.TypeSpec {
	return []index.TypeSpec{{URL: typeT, Feeds: []index.Kind{kindA, kindB}}}
}
func (puppet) Prepare(o *index.Object)          { o.Lookups = []string{"all"} }
func (p puppet) Roots() []index.DerivationID    { return p.roots }
func (p puppet) Rank(id index.DerivationID) int { return p.rank[id] }
func (p puppet) Subjects(o *index.Object) []index.DerivationID {
	if p.subject == nil {
		return nil
	}
	return p.subject(o)
}
func (p puppet) Derive(id index.DerivationID, _ any, r *index.Reader) { p.derive[id](r) }

func (p puppet) index(t *testing.T) *index.Index {
	t.Helper()
	ix, err := index.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return ix
}

func obj(k index.Kind, name, body string, v index.ResourceVersion) *index.Object {
	return &index.Object{ObjectKey: index.ObjectKey{Kind: k, Name: name}, Version: v, Body: body}
}

func emit(name, body string) index.Draft {
	return index.Draft{Type: typeT, Name: name, Body: []byte(body)}
}

func apply(ix *index.Index, changes ...index.Change) index.Commit {
	return ix.Apply(index.Cause{}, changes...)
}
