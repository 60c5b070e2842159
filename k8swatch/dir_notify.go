package k8swatch

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// listen asks to be told of changes. Without that (the system's limit is
// reached, say) the regular look at all files has to do.
func (d *Dir) listen() (<-chan fsnotify.Event, <-chan error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		d.opts.Logger.Warn("no file notifications; changes are seen only every "+d.opts.Rescan.String(), "path", d.root, "error", err)
		return nil, nil
	}
	d.notify = n
	d.listenTo(".")
	return n.Events, n.Errors
}

func (d *Dir) listenTo(folder string) {
	if d.notify == nil {
		return
	}
	if err := d.notify.Add(filepath.Join(d.root, filepath.FromSlash(folder))); err != nil {
		d.opts.Logger.Debug("no notifications for a folder", "path", folder, "error", err)
	}
}

// note takes note of an event, and reports whether it matters.
func (d *Dir) note(e fsnotify.Event) bool {
	name, ok := d.relative(e.Name)
	if !ok {
		return false
	}
	parts := strings.Split(name, "/")
	switch {
	case name == ".":
		d.all = true
	case path.Base(name) == "..data":
		// Kubernetes mounts a ConfigMap so: each file is a link through ..data,
		// which is replaced as a whole.
		d.all = true
	case slices.ContainsFunc(parts, hidden):
		return false
	case isManifest(name):
		d.dirty[name] = struct{}{}
		if e.Has(fsnotify.Create) {
			d.arrived[name] = struct{}{}
		} else if e.Has(fsnotify.Write) {
			delete(d.arrived, name)
		}
	default:
		d.all = true // a folder, perhaps
	}
	return true
}
