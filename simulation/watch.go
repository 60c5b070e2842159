package simulation

import (
	"slices"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// phase of a kind's watch.
type phase uint8

const (
	idle     phase = iota // to list, at the next try
	listing               // a list is under way
	broken                // the watch ended; to be opened anew
	watching              // the watch runs
)

// watch plays k8swatch's part for one kind of one replica: it lists in pages,
// shows what it sees early, and then follows the events of one API server
// replica.
type watch struct {
	kind    index.Kind
	server  *apiServer
	replica int // of the API server
	phase   phase
	// at is the version that the index's view of the kind is of; none before
	// anything was seen.
	at   version
	seen bool

	observed bool
	state    index.State

	// Of the list under way.
	rest     []*index.Object // pages still to come
	whole    map[index.ObjectKey]*index.Object
	listedAt version
	stream   bool // a WatchList: events come before its end
}

func newWatch(s *apiServer, kind index.Kind, replica int) *watch {
	return &watch{kind: kind, server: s, replica: replica, state: index.Unknown}
}

// step does what comes next and gives what the index is told. Nil: nothing to do.
func (w *watch) step(r *random, at statusTime) []index.Change {
	switch w.phase {
	case idle:
		return w.startList(r, at)
	case listing:
		return w.page(r, at)
	case broken:
		return w.open(r, at)
	default:
		return w.follow(r)
	}
}

// busy reports whether step has something to do that is not a mere bookmark.
func (w *watch) busy() bool {
	return w.phase != watching || len(w.server.after(w.kind, w.at, w.server.replicas[w.replica])) > 0
}

func (w *watch) turn(state index.State, message string, at statusTime) []index.Change {
	if w.state == state {
		return nil
	}
	w.state = state
	return []index.Change{index.KindStatus{Kind: w.kind, State: state, Error: message, At: at}}
}

// refused gives what an unhealthy kind answers to a list or watch, and whether
// it does.
func (w *watch) refused(at statusTime) ([]index.Change, bool) {
	switch w.server.health[w.kind] {
	case forbidden:
		return w.turn(index.Forbidden, "forbidden", at), true
	case failing:
		return w.turn(index.Failing, "500", at), true
	case unserved:
		if kinds.Find(w.kind).Required {
			return w.turn(index.Failing, "404", at), true
		}
		return w.turn(index.Absent, "not served", at), true
	}
	return nil, false
}

func (w *watch) startList(r *random, at statusTime) []index.Change {
	if changes, refused := w.refused(at); refused {
		return changes
	}
	w.phase = listing
	w.stream = r.oneIn(3)
	w.listedAt = w.server.now
	w.rest = w.server.listAt(w.kind, w.server.now)
	if r.oneIn(3) {
		slices.Reverse(w.rest)
	}
	w.whole = map[index.ObjectKey]*index.Object{}
	for _, o := range w.rest {
		w.whole[o.ObjectKey] = o
	}
	if !w.observed {
		return w.turn(index.Listing, "", at)
	}
	return nil
}

// page shows some objects early, or ends the list.
func (w *watch) page(r *random, at statusTime) []index.Change {
	if _, refused := w.refused(at); refused && r.oneIn(2) {
		return w.cut(at)
	}
	if len(w.rest) > 0 {
		n := min(len(w.rest), 1+r.below(4))
		page := w.rest[:n]
		w.rest = w.rest[n:]
		if !w.observed {
			w.at, w.seen = w.listedAt, true
		}
		return upserts(page)
	}
	if w.stream && r.oneIn(2) {
		if e := w.server.after(w.kind, w.listedAt, w.server.now); len(e) > 0 {
			return w.early(e[0])
		}
	}
	return w.end(at)
}

// early is an event that comes before the end of a streamed list.
func (w *watch) early(e event) []index.Change {
	w.listedAt = e.version
	if !w.observed {
		w.at = min(w.at, e.version)
	}
	if e.deleted {
		delete(w.whole, e.object.ObjectKey)
		return nil
	}
	w.whole[e.object.ObjectKey] = e.object
	return upserts([]*index.Object{e.object})
}

func upserts(page []*index.Object) []index.Change {
	var out []index.Change
	for _, o := range page {
		out = append(out, index.Upsert{Object: copyOf(o)})
	}
	return out
}

// copyOf: what Prepare fills in belongs to one index.
func copyOf(o *index.Object) *index.Object {
	return &index.Object{ObjectKey: o.ObjectKey, Version: o.Version, Body: o.Body}
}

// end completes the list.
func (w *watch) end(at statusTime) []index.Change {
	var objects []*index.Object
	for _, o := range w.whole {
		objects = append(objects, copyOf(o))
	}
	slices.SortFunc(objects, func(x, y *index.Object) int { return compareKeys(x.ObjectKey, y.ObjectKey) })
	replace := index.Replace{Kind: w.kind, Objects: objects, Version: w.listedAt}
	first := !w.observed
	w.at, w.seen, w.observed = w.listedAt, true, true
	w.whole = nil
	w.phase = broken
	changes := []index.Change{replace}
	if w.stream {
		w.phase = watching
	}
	if first || w.stream {
		changes = append(changes, w.turn(index.Observed, "", at)...)
	}
	return changes
}

// cut ends a list before its time; what was seen stays.
func (w *watch) cut(at statusTime) []index.Change {
	w.phase, w.rest, w.whole = idle, nil, nil
	changes, _ := w.refused(at)
	return changes
}

// open opens a watch from where the view is.
func (w *watch) open(r *random, at statusTime) []index.Change {
	if changes, refused := w.refused(at); refused {
		if w.server.health[w.kind] == unserved {
			w.phase = idle
		}
		return changes
	}
	if w.at < w.server.compact {
		w.phase = idle // 410
		return nil
	}
	w.replica = r.below(len(w.server.replicas))
	w.phase = watching
	return w.turn(index.Observed, "", at)
}

// follow applies the next events, or a bookmark when there are none.
func (w *watch) follow(r *random) []index.Change {
	upTo := w.server.replicas[w.replica]
	events := w.server.after(w.kind, w.at, upTo)
	if len(events) == 0 {
		if upTo <= w.at {
			return nil
		}
		w.at = upTo
		return []index.Change{index.Bookmark{Kind: w.kind, Version: upTo}}
	}
	if n := 1 + r.below(4); n < len(events) {
		events = events[:n]
	}
	var out []index.Change
	for _, e := range events {
		out = append(out, inOrder(e))
		w.at = e.version
	}
	return out
}

func inOrder(e event) index.Change {
	if e.deleted {
		return index.Delete{Key: e.object.ObjectKey, Version: e.version}
	}
	return index.Upsert{Object: copyOf(e.object), InOrder: true}
}

// drop ends the watch, or cuts the list.
func (w *watch) drop(at statusTime) []index.Change {
	switch w.phase {
	case watching:
		w.phase = broken
	case listing:
		return w.cut(at)
	}
	return nil
}
