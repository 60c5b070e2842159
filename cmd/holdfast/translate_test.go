package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// From files to resources, with the problems on stderr.
func TestTranslate(t *testing.T) {
	folder := shopFolder(t)
	got := run(t.Context(), nil, "translate", "-o", "json", "--type=Cluster", folder)
	if got.code != exitFailed || !strings.Contains(got.stderr, "HTTPProxy shop/broken: spec.routes[0]") {
		t.Errorf("exit code %d, stderr:\n%s", got.code, got.stderr)
	}
	var views []resourceView
	if err := json.Unmarshal([]byte(got.stdout), &views); err != nil {
		t.Fatalf("%v\n%s", err, got.stdout)
	}
	if len(views) != 1 {
		t.Fatalf("want one cluster:\n%s", got.stdout)
	}
	v := views[0]
	if v.Type != clusterType || !strings.Contains(v.Name, "shop/cart") || !strings.HasPrefix(v.Version, "h1.") || len(v.Provenance) == 0 {
		t.Errorf("%+v", v)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		has  string
	}{
		"errors allowed":  {[]string{"--allow-errors", folder}, exitOK, "# Cluster " + v.Name + "\n"},
		"by name":         {[]string{"--allow-errors", "--name", "*cart*", "--type", "cluster", folder}, exitOK, v.Name},
		"one file":        {[]string{"--allow-errors", filepath.Join(folder, "shop.yaml")}, exitOK, v.Name},
		"an unknown type": {[]string{"--type", "Pod", folder}, exitUsage, ""},
	} {
		got := run(t.Context(), nil, append([]string{"translate"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stdout, c.has) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := run(t.Context(), nil, "translate", "--allow-errors", "-o", "json", "--name", "nothing", folder); strings.TrimSpace(got.stdout) != "[]" {
		t.Errorf("no match: %q", got.stdout)
	}
}

func TestTranslateSaysWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte("a: [b"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := run(t.Context(), nil, "translate", dir)
	if got.code != exitFailed || !strings.Contains(got.stderr, "x.yaml") {
		t.Errorf("%+v", got)
	}
}
