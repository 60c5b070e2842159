package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLook takes pictures of a holdfast that runs already, for the eyes of whoever
// changes the page:
//
//	HOLDFAST_PAGE_URL=http://127.0.0.1:6060 HOLDFAST_PAGE_LOOK='/ /view/hosts' go test -run TestLook .
func TestLook(t *testing.T) {
	url := os.Getenv("HOLDFAST_PAGE_URL")
	if url == "" {
		t.Skip("HOLDFAST_PAGE_URL is not set")
	}
	b, err := Start(t.Context(), chromium(t))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, path := range strings.Fields(os.Getenv("HOLDFAST_PAGE_LOOK")) {
		name := strings.Trim(strings.NewReplacer("/", "-", "?", "-", "=", "-", "%", "-").Replace(path), "-")
		for suffix, v := range views {
			err := b.Open(url+path, v, func(tab *Tab) error { return tab.Shot(filepath.Join(shots(), "look-"+name+"-"+suffix+".png")) })
			if err != nil {
				t.Error(err)
			}
		}
	}
}
