package k8swatch

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/holdfast-xds/holdfast/index"
)

// folderID is the source id of every folder: a folder has no versions by which
// one could tell two of them apart.
const folderID = "folder"

// Dir is the source that reads a folder of YAML and JSON files (*.yaml, *.yml,
// *.json), with its subfolders. Files and folders whose names begin with a dot
// are not read, so that a writer can write ".x.tmp" and rename it.
type Dir struct {
	// Set by NewDir.
	root string
	sink Sink
	opts Options

	// Owned by Run.
	folder   *folder
	files    *files
	notify   *fsnotify.Watcher // nil if there is none to be had
	span     *listSpan         // of the first read
	states   map[index.Kind]*folderState
	rootGone error
	locked   []string // folders that can't be read
	// dirty are the paths to look at; all says that every file is.
	dirty map[string]struct{}
	all   bool
}

// folderState is what the index was told of a kind.
type folderState struct {
	observed bool
	state    index.State
	message  string
}

var _ Source = (*Dir)(nil)

// NewDir makes a source for the folder at path, which must exist.
func NewDir(path string, sink Sink, opts Options) (*Dir, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", path, err)
	}
	if err := isFolder(root); err != nil {
		return nil, err
	}
	d := &Dir{root: root, sink: sink, opts: opts.withDefaults(), folder: newFolder(), states: map[index.Kind]*folderState{}, dirty: map[string]struct{}{}}
	d.files = newFiles(d.root, d.opts.Settle)
	d.span = &listSpan{kind: folderID, tracer: d.opts.Tracer}
	for _, w := range d.opts.Kinds {
		d.states[w.Kind] = &folderState{state: index.Unknown}
	}
	return d, nil
}

func isFolder(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("folder %s: %w", path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("folder %s: is not a folder", path)
	}
	return nil
}

// Run implements Source.
func (d *Dir) Run(ctx context.Context) error {
	events, errs := d.listen()
	if d.notify != nil {
		defer d.notify.Close()
	}
	d.deliver(index.SourceID{ID: folderID})
	d.first(ctx)
	rescan := time.NewTicker(d.opts.Rescan)
	defer rescan.Stop()
	quiet, settle := newAlarm(), newAlarm()
	settle.in(d.files.wait(time.Now()))
	var busy time.Time // since when there are events that were not acted upon
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			if !d.note(e) {
				continue
			}
			if busy.IsZero() {
				busy = time.Now()
			}
			quiet.in(min(d.opts.Debounce, max(0, maxBusy*d.opts.Debounce-time.Since(busy))))
			continue
		case err := <-errs:
			// Events were lost; each file is looked at.
			d.opts.Logger.Debug("folder events were lost", "path", d.root, "error", err)
			d.all = true
		case <-rescan.C:
			d.all = true
		case <-quiet.C:
		case <-settle.C:
		}
		busy = time.Time{}
		d.step()
		settle.in(d.files.wait(time.Now()))
	}
}

// maxBusy is for how many Debounces events may go on before they are acted upon.
const maxBusy = 5

// alarm is a timer that can be set again at any time; the earliest is not kept.
type alarm struct{ *time.Timer }

func newAlarm() alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return alarm{t}
}

// in sets the alarm; a negative time leaves it unset.
func (a alarm) in(d time.Duration) {
	if d < 0 {
		a.Stop()
		return
	}
	a.Reset(d)
}

// deliver gives changes to the sink in one transaction.
func (d *Dir) deliver(changes ...index.Change) {
	if len(changes) == 0 {
		return
	}
	var b batch
	b.add(item{changes: changes, at: time.Now(), list: d.span.context()})
	cause, done := b.start(d.opts.Tracer)
	done(d.sink.Apply(cause, b.changes...))
	for _, c := range changes {
		if p, ok := c.(index.Problems); ok {
			d.logProblems(p)
		}
	}
}

// maxLogged is how many problems of one subject are logged.
const maxLogged = 10

func (d *Dir) logProblems(p index.Problems) {
	if len(p.List) == 0 {
		d.opts.Logger.Info("problem is gone", "subject", p.Subject)
	}
	for _, x := range p.List[:min(len(p.List), maxLogged)] {
		level := slog.LevelWarn
		if x.Severity == index.Warning {
			level = slog.LevelInfo
		}
		d.opts.Logger.Log(context.Background(), level, "problem in the folder", "object", x.Object.String(), "problem", x.Message)
	}
}
