package k8swatch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// What files hold is everything, even where a part of them can't be read.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("b.yaml", "apiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: cart}\n")
	write("a.yaml", "a: [b")
	write(".hidden.yaml", "apiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: hidden}\n")
	other := filepath.Join(t.TempDir(), "single.manifest")
	if err := os.WriteFile(other, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	changes, err := Read(dir, other)
	if err != nil {
		t.Fatal(err)
	}
	var objects, problems []string
	lists := map[index.Kind]bool{}
	for _, c := range changes {
		switch c := c.(type) {
		case index.Replace:
			lists[c.Kind] = true
			for _, o := range c.Objects {
				objects = append(objects, o.String())
			}
		case index.Problems:
			for _, p := range c.List {
				problems = append(problems, p.Message)
			}
		}
	}
	if got := strings.Join(objects, ", "); got != "Service shop/cart, Namespace shop" {
		t.Errorf("objects: %s", got)
	}
	if len(lists) != len(kinds.All) {
		t.Errorf("complete: %v", lists)
	}
	if len(problems) != 1 || !strings.Contains(problems[0], "a.yaml") || strings.Contains(problems[0], "stays") {
		t.Errorf("problems: %q", problems)
	}
	if _, err := Read(filepath.Join(dir, "nothing")); err == nil {
		t.Error("a path that is not there is no error")
	}
}
