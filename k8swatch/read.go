package k8swatch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// Read reads files, and the manifests of folders, once. The changes make an index
// of which every kind is complete: nothing exists but what the files hold, even
// if a part of them can't be read, which is an index.Problem. A path that can't be
// opened is an error.
func Read(paths ...string) ([]index.Change, error) {
	f := newFolder()
	for _, p := range paths {
		names, err := manifestsOf(p)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			f.put(parse(kinds.All, name, text, nil))
		}
	}
	changes := []index.Change{index.SourceID{ID: folderID}}
	for _, c := range f.take(false) {
		if p, ok := c.(index.Problems); ok { // the objects are in the lists below
			changes = append(changes, onlyOnce(p))
		}
	}
	for _, w := range kinds.All {
		changes = append(changes, index.Replace{Kind: w.Kind, Objects: f.list(w.Kind)}, index.KindStatus{Kind: w.Kind, State: index.Observed})
	}
	return changes, nil
}

// onlyOnce says nothing of earlier readings, of which there are none.
func onlyOnce(p index.Problems) index.Problems {
	p.List = slices.Clone(p.List)
	for i := range p.List {
		m := &p.List[i].Message
		*m = strings.TrimSuffix(strings.TrimSuffix(*m, lastReadStays), lastGoodStays)
	}
	return p
}

// manifestsOf gives the files of one path: itself, or those in a folder, by name.
func manifestsOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	found := newFiles(path, 0).walk()
	for name, err := range found.unreadable {
		return nil, fmt.Errorf("%s: %w", filepath.Join(path, name), err)
	}
	var out []string
	for name := range found.files {
		out = append(out, filepath.Join(path, filepath.FromSlash(name)))
	}
	slices.Sort(out)
	return out, nil
}
