package k8swatch

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// stamp tells by cheap means whether a file has changed.
type stamp struct {
	modified time.Time
	size     int64
	gone     bool
}

func stampOf(info fs.FileInfo) stamp { return stamp{modified: info.ModTime(), size: info.Size()} }

func (s stamp) equal(t stamp) bool {
	return s.gone == t.gone && s.size == t.size && s.modified.Equal(t.modified)
}

// files decides which files of a folder are to be read, and when. A file that
// shrank or vanished may be one that is just being written: only when it has been
// still for a while is it believed, unless it was put in its place whole, by a
// rename. It does no more I/O than to look at names, sizes and times.
type files struct {
	root   string
	settle time.Duration

	read    map[string]stamp // as of the last reading
	doubted map[string]doubt
	folder  fs.FileInfo // of the root, when last seen
}

// doubt is a state of a file that is not believed yet.
type doubt struct {
	stamp
	since time.Time
}

func newFiles(root string, settle time.Duration) *files {
	return &files{root: root, settle: settle, read: map[string]stamp{}, doubted: map[string]doubt{}}
}

// verdict on a file that was looked at.
type verdict int

const (
	unchanged verdict = iota
	changed
	vanished
	doubtful
)

// judge compares a file with what was read of it. whole says that it is known
// not to be in the middle of being written.
func (f *files) judge(name string, now stamp, whole bool, at time.Time) verdict {
	last, known := f.read[name]
	if known && last.equal(now) || !known && now.gone {
		delete(f.doubted, name)
		return unchanged
	}
	suspicious := now.gone || !whole && known && now.size < last.size
	if suspicious && !f.still(name, now, at) {
		return doubtful
	}
	if now.gone {
		return vanished
	}
	return changed
}

// still reports whether the file has been as it is now for long enough, and
// begins to count when it is seen so for the first time.
func (f *files) still(name string, now stamp, at time.Time) bool {
	d, doubted := f.doubted[name]
	if !doubted || !d.equal(now) {
		f.doubted[name] = doubt{now, at}
		return false
	}
	return at.Sub(d.since) >= f.settle
}

// accept notes that the file was read (or is gone) as it was at the stamp.
func (f *files) accept(name string, now stamp) {
	delete(f.doubted, name)
	if now.gone {
		delete(f.read, name)
		return
	}
	f.read[name] = now
}

// wait is the time until the first doubt can be settled; negative for never.
func (f *files) wait(at time.Time) time.Duration {
	first := time.Duration(-1)
	for _, d := range f.doubted {
		left := max(0, f.settle-at.Sub(d.since))
		if first < 0 || left < first {
			first = left
		}
	}
	return first
}

func (f *files) look(name string) (stamp, error) {
	info, err := os.Stat(filepath.Join(f.root, filepath.FromSlash(name)))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return stamp{gone: true}, nil
	case err != nil:
		return stamp{}, err
	case info.IsDir():
		return stamp{gone: true}, nil
	}
	return stampOf(info), nil
}

// found is what a walk through the folder gives.
type found struct {
	files   map[string]struct{}
	folders []string // "." is the root
	// unreadable folders: what they hold is not known.
	unreadable map[string]error
}

func (f *files) walk() found {
	out := found{files: map[string]struct{}{}, unreadable: map[string]error{}}
	f.walkInto(&out, ".")
	return out
}

func (f *files) walkInto(out *found, folder string) {
	entries, err := os.ReadDir(filepath.Join(f.root, filepath.FromSlash(folder)))
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			out.unreadable[folder] = err
		}
		return
	}
	out.folders = append(out.folders, folder)
	for _, e := range entries {
		name := path.Join(folder, e.Name())
		switch {
		case hidden(e.Name()):
		case e.IsDir():
			f.walkInto(out, name)
		case isManifest(name):
			out.files[name] = struct{}{}
		}
	}
}

// known gives the files that were read or are doubted.
func (f *files) known() []string {
	var out []string
	for name := range f.read {
		out = append(out, name)
	}
	for name := range f.doubted {
		if _, dup := f.read[name]; !dup {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

func isManifest(name string) bool {
	switch path.Ext(name) {
	case ".yaml", ".yml", ".json":
		return true
	}
	return false
}
