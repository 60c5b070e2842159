package index_test

import (
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

// folded are rules by which Secrets are found however their names are written.
type folded struct{ indextest.Rules }

func (f folded) Types() []index.TypeSpec {
	types := f.Rules.Types()
	for i := range types {
		if types[i].URL == indextest.Secret {
			types[i].Aliasing = &index.Aliasing{
				Candidates: func(name string) []string { return []string{strings.ToLower(name)} },
				Rename:     func(body []byte, name string) []byte { return []byte(name + "=" + string(body)) },
			}
		}
	}
	return types
}

func TestAlias(t *testing.T) {
	ix, err := index.New(folded{})
	if err != nil {
		t.Fatal(err)
	}
	apply := func(text string) *index.Snapshot {
		ix.Apply(index.Cause{}, indextest.Changes(text)...)
		return ix.Snapshot()
	}
	apply("source s\nlist host @10; a cert=c @5\nlist path @10\nlist svc @10\nlist slice @10")
	s := apply("eager cert c pem=x @6")
	own, alias := secret("c"), secret("C")
	r := s.Resolve(alias)
	if r == nil || !r.Alias() || string(r.Body) != "C=x" || r.Digest != s.Resource(own).Digest {
		t.Fatalf("alias %+v", r)
	}
	if s.Resource(alias) != nil || s.Resolve(own).Alias() {
		t.Error("an alias is no row, and a row no alias")
	}
	// An unseen certificate could be a better candidate.
	if lacks := s.Incomplete(r.Needs(index.NeedStrict)); len(lacks) != 1 || lacks[0].Kind != indextest.Cert {
		t.Errorf("the alias needs %v", lacks)
	}
	if p := s.ProveAlias(alias); !p.Valid() || s.ProveAlias(own).Valid() {
		t.Error("what is an alias can be taken back, and nothing else")
	}
	if p, _ := s.ProveNonexistent(alias); p.Valid() {
		t.Error("a name that is answered for is proven not to exist")
	}
	held := s.TokenOf(r)
	// The target goes. As long as what it needed is not known the name stays.
	s = apply("delete host a @11")
	if s.Resolve(alias) != nil {
		t.Fatal("the alias outlives its target")
	}
	if p, lacks := s.ProveAbsent(alias, held); p.Valid() || len(lacks) == 0 {
		t.Error("a removal without a proof")
	}
	s = apply("list cert @12")
	if p, lacks := s.ProveAbsent(alias, held); !p.Valid() || p.Key() != alias {
		t.Errorf("no proof, for lack of %v", lacks)
	}
	if s.ProveAlias(alias).Valid() {
		t.Error("what is no alias is taken back")
	}
}

func secret(name string) index.ResourceKey {
	return index.ResourceKey{Type: indextest.Secret, Name: name}
}
