package k8swatch

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// first reads the whole folder: its initial list. What is read goes to the index
// at once, in batches; the end of the list is settled by step.
func (d *Dir) first(ctx context.Context) {
	d.span.page(true)
	d.all = true
	for _, name := range d.toLookAt() {
		if ctx.Err() != nil {
			return
		}
		d.read(name)
		if len(d.folder.touched) >= d.opts.Batch {
			d.deliver(d.folder.take(false)...)
		}
	}
	d.deliver(d.folder.take(false)...)
	d.conclude()
	d.span.end(len(d.folder.applied))
	d.start.outcome(folderID, index.Observed)
}

// step takes in what has changed, as one transaction.
func (d *Dir) step() {
	for _, name := range d.toLookAt() {
		d.read(name)
	}
	d.conclude()
}

// conclude delivers what is known now, and completes the lists that can be.
func (d *Dir) conclude() {
	changes := d.folder.take(true)
	for _, w := range d.opts.Kinds {
		changes = append(changes, d.settle(w.Kind)...)
	}
	d.deliver(changes...)
}

// settle gives the changes of a kind's completeness: the Replace that ends its
// first list, and its state.
func (d *Dir) settle(kind index.Kind) []index.Change {
	s := d.states[kind]
	var out []index.Change
	state, message := index.Observed, d.missing(kind, s.observed)
	switch {
	case message != "":
		state = index.Failing
	case !s.observed && len(d.files.doubted) > 0:
		state = index.Listing
	case !s.observed:
		s.observed = true
		out = append(out, index.Replace{Kind: kind, Objects: d.folder.list(kind)})
	}
	if s.state == state && s.message == message {
		return out
	}
	if s.state != state {
		d.opts.Logger.Log(context.Background(), levelOf(state), "kind is "+string(state), append(messageAttrs(kind, message), tracing.LogAttr(d.span.newest()))...)
	}
	s.state, s.message = state, message
	return append(out, index.KindStatus{Kind: kind, State: state, Error: message, At: d.opts.Now()})
}

func (d *Dir) missing(kind index.Kind, observed bool) string {
	if d.rootGone != nil {
		return d.rootGone.Error()
	}
	return d.folder.missing(kind, observed)
}

// toLookAt gives the files that may have changed since they were last read, in
// the order of their names.
func (d *Dir) toLookAt() []string {
	all, names := d.all, d.dirty
	d.all, d.dirty = false, map[string]struct{}{}
	if d.rootGone = d.checkRoot(); d.rootGone != nil {
		d.folder.report(".", []index.Problem{brokenFile(d.root, d.rootGone)})
		d.all = true // when it is back
		return nil
	}
	d.folder.report(".", nil)
	if all {
		begin := time.Now()
		for _, name := range d.scan() {
			names[name] = struct{}{}
		}
		d.scanTook = time.Since(begin)
	}
	for name := range d.files.doubted {
		names[name] = struct{}{}
	}
	return slices.Sorted(maps.Keys(names))
}

// scan walks the folder, listens to each subfolder, and gives all files that
// are there or were.
func (d *Dir) scan() []string {
	seen := d.files.walk()
	for _, folder := range seen.folders {
		d.listenTo(folder)
	}
	for folder, err := range seen.unreadable {
		d.folder.put(&reading{path: folder, broken: true, problems: []index.Problem{brokenFile(folder, err)}})
	}
	for _, folder := range d.locked {
		if seen.unreadable[folder] == nil {
			d.folder.drop(folder)
		}
	}
	d.locked = slices.Sorted(maps.Keys(seen.unreadable))
	names := slices.DeleteFunc(d.files.known(), func(name string) bool { return inside(name, d.locked) })
	return append(names, slices.Collect(maps.Keys(seen.files))...)
}

// inside reports whether a file is in one of the folders.
func inside(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return folder == "." || strings.HasPrefix(name, folder+"/")
	})
}

// read takes in one file, if it has changed and can be believed.
func (d *Dir) read(name string) {
	now, err := d.files.look(name)
	if err != nil {
		d.unreadable(name, err)
		return
	}
	whole := d.whole(name, now)
	switch d.files.judge(name, now, whole, time.Now()) {
	case vanished:
		d.folder.drop(name)
		d.accept(name, now)
	case changed:
		d.parse(name, now, whole)
	}
}

// whole: the file came by a rename, not by being created and then written, as
// far as events and its time of modification tell. An empty one is doubted.
func (d *Dir) whole(name string, now stamp) bool {
	_, arrived := d.arrived[name]
	return arrived && now.size > 0 && time.Since(now.modified) > d.opts.Debounce/2
}

func (d *Dir) parse(name string, now stamp, whole bool) {
	text, err := os.ReadFile(filepath.Join(d.root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return // the event that says so is on its way
	}
	if err != nil {
		d.unreadable(name, err)
		return
	}
	r := parse(d.opts.Kinds, name, text, d.folder.files[name])
	// Perhaps the rest of it is still being written.
	half := !whole && (r.broken || len(text) == 0)
	if half && d.young(name, now) && !d.files.still(name, now, time.Now()) {
		return
	}
	d.folder.put(r)
	d.accept(name, now)
}

func (d *Dir) accept(name string, now stamp) {
	d.files.accept(name, now)
	delete(d.arrived, name)
}

// young: the file is not known yet to have been still for a while.
func (d *Dir) young(name string, now stamp) bool {
	_, known := d.files.read[name]
	return known || time.Since(now.modified) < d.opts.Settle
}

// unreadable keeps all that was read of a file. It is tried again at each look.
func (d *Dir) unreadable(name string, err error) {
	d.folder.put(&reading{path: name, broken: true, problems: []index.Problem{brokenFile(name, err)}})
	d.accept(name, stamp{size: -1})
}

// checkRoot: a folder that is gone, or that another, empty one has taken the
// place of (an unmounted volume), says nothing about what was in it.
func (d *Dir) checkRoot() error {
	if err := isFolder(d.root); err != nil {
		return err
	}
	info, err := os.Stat(d.root)
	if err != nil {
		return err
	}
	if was := d.files.folder; was != nil && !os.SameFile(was, info) && len(d.files.read) > 0 && len(d.files.walk().files) == 0 {
		return errReplaced
	}
	d.files.folder = info
	return nil
}

var errReplaced = errors.New("the folder was replaced by an empty one; its objects are kept until there are files in it")

// relative gives a path inside the folder, with slashes; "." is the folder itself.
func (d *Dir) relative(name string) (string, bool) {
	rel, err := filepath.Rel(d.root, name)
	return filepath.ToSlash(rel), err == nil
}
