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
	"github.com/holdfast-xds/holdfast/tracing"
)

// folderID is the source id of every folder: a folder has no versions by which
// one could tell two of them apart.
const folderID = "folder"

// Dir is the source that reads a folder of YAML and JSON files (*.yaml, *.yml,
// *.json), with its subfolders. Files and folders whose names begin with a dot
// are not read, so that a writer can write ".x.tmp" and rename it: what is put in
// its place so is believed at once. A file that is written in place and shrinks,
// is empty or does not parse, or one that vanishes, is believed when it has been
// still for Options.Settle, since it may be in the middle of being written.
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
	start    *startSpan
	meters   *meters
	states   map[index.Kind]*folderState
	rootGone error
	locked   []string // folders that can't be read
	scanTook time.Duration
	// dirty are the paths to look at; all says that every file is. arrived are
	// those that appeared and were not written to since.
	dirty, arrived map[string]struct{}
	all            bool
	// came is when the first of the changes being delivered was noticed.
	came time.Time
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
	d := &Dir{root: root, sink: sink, opts: opts.withDefaults(), folder: newFolder(), states: map[index.Kind]*folderState{}, dirty: map[string]struct{}{}, arrived: map[string]struct{}{}}
	d.files = newFiles(d.root, d.opts.Settle)
	if d.meters, err = newMeters(d.opts.Meter); err != nil {
		return nil, fmt.Errorf("metrics of the folder: %w", err)
	}
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
	d.start = startUp(d.opts.Tracer, []index.Kind{folderID})
	defer d.start.end()
	d.span = &listSpan{kind: folderID, tracer: d.opts.Tracer, start: d.start, meters: d.meters}
	events, errs := d.listen()
	if d.notify != nil {
		defer d.notify.Close()
	}
	d.deliver(index.SourceID{ID: folderID})
	d.first(ctx)
	quiet, settle, rescan := newAlarm(), newAlarm(), newAlarm()
	settle.in(d.files.wait(time.Now()))
	rescan.in(d.opts.Rescan)
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
			rescan.in(max(d.opts.Rescan, d.scanTook*scanShare))
		case <-quiet.C:
		case <-settle.C:
		}
		d.came, busy = busy, time.Time{}
		d.step()
		settle.in(d.files.wait(time.Now()))
	}
}

// scanShare bounds the looks at all files to this fraction of one CPU: 1/300.
const scanShare = 300

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
	at := d.came
	if at.IsZero() {
		at = time.Now()
	}
	b.add(item{changes: changes, at: at, list: d.span.context()})
	cause, done := b.start(d.opts.Tracer)
	c := d.sink.Apply(cause, b.changes...)
	d.opts.Arrivals.Note(uint64(c.Revision), b.at)
	done(c)
	for _, c := range changes {
		if p, ok := c.(index.Problems); ok {
			d.logProblems(cause, p)
		}
	}
}

// maxLogged is how many problems of one subject are logged.
const maxLogged = 10

func (d *Dir) logProblems(cause index.Cause, p index.Problems) {
	if len(p.List) == 0 {
		d.opts.Logger.Info("problem is gone", "subject", p.Subject, tracing.LogAttr(cause))
	}
	for _, x := range p.List[:min(len(p.List), maxLogged)] {
		level := slog.LevelWarn
		if x.Severity == index.Warning {
			level = slog.LevelInfo
		}
		d.opts.Logger.Log(context.Background(), level, "problem in the folder", "object", x.Object.String(), "problem", x.Message, tracing.LogAttr(cause))
	}
}
