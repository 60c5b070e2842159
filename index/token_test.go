package index_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/index/indextest"
)

func TestParseToken(t *testing.T) {
	s := indextest.New().Snapshot()
	h := func(k index.Kind, v index.ResourceVersion, absent bool) index.Held {
		return index.Held{Kind: k, Version: v, Absent: absent}
	}
	cases := map[string]index.Token{
		"h1.z.s.":            {Digest: 35},
		"h1.z.s.H:a":         {Digest: 35, Vector: []index.Held{h(indextest.Host, 10, false)}},
		"h1.z.s.H:a,S~1,E~0": {Digest: 35, Vector: []index.Held{h(indextest.Host, 10, false), h(indextest.Svc, 1, true), h(indextest.Slice, 0, true)}},
		// Another source: its versions don't compare; its digest does.
		"h1.z.x.H:a": {Digest: 35, Foreign: true},
		// A kind of another release, or damage: nothing of the vector is believed.
		"h1.z.s.X:a":                          {Digest: 35, Foreign: true},
		"h1.z.s.H:a,":                         {Digest: 35, Foreign: true},
		"h1.z.s.H":                            {Digest: 35, Foreign: true},
		"h1.z.s.:1":                           {Digest: 35, Foreign: true},
		"h1.z.s.H:-1":                         {Digest: 35, Foreign: true},
		"h1.z.s.H:a.b":                        {Digest: 35, Foreign: true},
		"h1.z.s.H:" + strings.Repeat("z", 20): {Digest: 35, Foreign: true},
		// Not in our form.
		"":            {Foreign: true, Formless: true},
		"1":           {Foreign: true, Formless: true},
		"h1":          {Foreign: true, Formless: true},
		"h1.z":        {Foreign: true, Formless: true},
		"h1.z.s":      {Foreign: true, Formless: true},
		"h2.z.s.H:a":  {Foreign: true, Formless: true},
		"h1..s.H:a":   {Foreign: true, Formless: true},
		"h1.!.s.H:a":  {Foreign: true, Formless: true},
		"sha256:abc":  {Foreign: true, Formless: true},
		"h1.-1.s.H:a": {Foreign: true, Formless: true},
	}
	for text, want := range cases {
		if got := s.ParseToken(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}

// Before the source has told its id, a token that has one may be our own: it is
// held to its vector and to what a foreign one is held to.
func TestTokensBeforeTheSourceIsKnown(t *testing.T) {
	ix, err := index.New(indextest.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	got := ix.Snapshot().ParseToken("h1.z.s.H:a")
	if !got.Foreign || len(got.Vector) != 1 {
		t.Fatalf("got %+v", got)
	}
	apply(ix, indextest.Changes("list host @5\nlist path @5\nlist svc @5")...)
	_, lacks := ix.Snapshot().ProveAbsent(key("cluster/web"), got)
	if lackNames(lacks) != "host(5<10)" {
		t.Fatalf("lacks %s", lackNames(lacks))
	}
}

// FuzzParseToken: any text parses, the same way twice, and nothing foreign keeps a
// vector.
func FuzzParseToken(f *testing.F) {
	ix := indextest.New()
	apply(ix, indextest.Changes("list host @10; a svc=web,api cert=c @5\neager svc web @6\nlist slice @20; e of=web addr=1 @7\neager cert c @8")...)
	s := ix.Snapshot()
	own := map[string]*index.Resource{}
	for _, spec := range (indextest.Rules{}).Types() {
		for r := range s.Resources(spec.URL) {
			own[s.Token(r)] = r
			f.Add(s.Token(r))
		}
	}
	f.Add("h1.0.s.H:a,S~0")
	f.Add("h1.0.other.H:a")
	f.Add("h1...")
	f.Fuzz(func(t *testing.T, text string) {
		got := s.ParseToken(text)
		if !reflect.DeepEqual(got, s.ParseToken(text)) {
			t.Fatal("parsed differently the second time")
		}
		if got.Foreign && len(got.Vector) > 0 || got.Formless && !got.Foreign {
			t.Fatalf("%+v", got)
		}
		if r := own[text]; r != nil && !reflect.DeepEqual(got, s.TokenOf(r)) {
			t.Fatalf("%q of %s is %+v, was made from %+v", text, r, got, s.TokenOf(r))
		}
		// A token that rests on nothing and is not foreign would be a licence.
		s.ProveAbsent(index.ResourceKey{Type: indextest.Cluster, Name: "gone"}, got)
	})
}
