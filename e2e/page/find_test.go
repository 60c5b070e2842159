package page

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// views are the ways in which each page is looked at.
var views = map[string]View{
	"light":  {Width: 1366, Height: 900},
	"dark":   {Width: 1366, Height: 900, Dark: true},
	"narrow": {Width: 390, Height: 844},
}

// shots is where pictures go.
func shots() string {
	if dir := os.Getenv("HOLDFAST_PAGE_SHOTS"); dir != "" {
		return dir
	}
	return filepath.Join(os.TempDir(), "holdfast-page-shots")
}

// find gives the browser's path.
func find() (string, error) {
	for _, name := range []string{os.Getenv("HOLDFAST_TEST_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium is installed (on Debian: apt-get install chromium)")
}

// chromium is find, which skips the test where there is none.
func chromium(t *testing.T) string {
	t.Helper()
	path, err := find()
	if err != nil {
		t.Skip(err)
	}
	return path
}
