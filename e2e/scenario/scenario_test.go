package scenario

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/e2e/backend"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

func runner(t *testing.T) *Runner {
	t.Helper()
	r := &Runner{
		Folder: t.TempDir(), Backends: map[string]*backend.Backend{},
		Generator: fixture.New(fixture.Options{Backends: []fixture.Backend{{Name: "x", Addrs: []netip.AddrPort{{}}}}}),
	}
	for _, name := range []string{"amber", "birch", "cedar", "dahlia", "elder"} {
		b, err := backend.Start(name, netip.MustParseAddrPort("127.0.0.1:0"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		r.Backends[name] = b
	}
	return r
}

// The project's own scenarios can be read, and each says something of its own.
func TestScenariosAreReadable(t *testing.T) {
	all, err := Load("../scenarios", runner(t).Words())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		for _, step := range s.Steps {
			if (step.Get != "") != (step.Want != nil) {
				t.Errorf("%s: %v: a request and a want go together", s.Name, &step)
			}
		}
	}
}

func TestAMistakeInAFileIsFound(t *testing.T) {
	for text, want := range map[string]string{
		"about: a\nfeatures: [X]\nsteps: [{got: x}]":                      `unknown field "got"`,
		"about: a\nfeatures: [X]":                                         "needs about",
		"about: ${nobody.ip}\nfeatures: [X]\nsteps: [{get: http://x.y/}]": "${nobody.ip}",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(dir, nil); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.yaml") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A want that does not hold fails: against a backend in place of an Envoy.
func TestRunFailsOnAWrongAnswer(t *testing.T) {
	r := runner(t)
	r.HTTP, r.Within = r.Backends["amber"].Addrs()[0], 100_000_000
	story := func(w *Want) error {
		s := &Scenario{Name: "x", Backends: map[string]string{"web": "amber"}, Steps: []Step{{Get: "http://a.test/x", Want: w}}}
		return r.Run(t.Context(), s)
	}
	yes := "a.test"
	if err := story(&Want{Status: 200, Backend: "amber", Headers: map[string]*string{"X-Host": &yes, "X-Other": nil}, Seen: &Seen{Path: "/x", Host: yes}}); err != nil {
		t.Error(err)
	}
	for _, w := range []*Want{
		{Status: 201},
		{Backend: "birch"},
		{Refused: true},
		{Headers: map[string]*string{"X-Host": nil}},
		{Seen: &Seen{Path: "/y"}},
		{Share: map[string]float64{"birch": 1}},
		{Mirrored: "birch"},
		{Body: &yes},
		{Certificate: "a.test"},
	} {
		if err := story(w); err == nil {
			t.Errorf("%+v holds", w)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(r.Folder, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
