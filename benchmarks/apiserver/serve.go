package apiserver

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

const (
	typeJSON          = "application/json"
	typeProtobuf      = "application/vnd.kubernetes.protobuf"
	typeProtobufWatch = "application/vnd.kubernetes.protobuf;stream=watch"
)

// serveKind serves a list or a watch of one kind.
func (s *Server) serveKind(w http.ResponseWriter, r *http.Request, st *store) {
	q := r.URL.Query()
	if q.Get("watch") != "true" && q.Get("watch") != "1" {
		if st.passed(r.Context().Done()) {
			s.list(w, st, q.Get("limit"), q.Get("continue"))
		}
		return
	}
	seconds, err := strconv.Atoi(q.Get("timeoutSeconds"))
	if err != nil {
		seconds = 3600
	}
	x := &watcher{store: st, w: bufio.NewWriterSize(w, 64<<10), flush: http.NewResponseController(w), bookmarks: q.Get("allowWatchBookmarks") == "true"}
	w.Header().Set("Content-Type", typeProtobufWatch)
	if st.json {
		w.Header().Set("Content-Type", typeJSON)
	}
	w.WriteHeader(http.StatusOK)
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	next := 0
	if q.Get("sendInitialEvents") == "true" {
		_ = x.flush.Flush()
		if !st.passed(r.Context().Done()) {
			return
		}
		next, err = x.initial(s.now())
	} else {
		version, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64) // 0 is from the beginning
		next = st.since(version)
	}
	if err == nil {
		x.follow(r, next, end.C)
	}
}

func (s *Server) now() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// list serves one page. The continue token is the number of objects before it.
func (s *Server) list(w http.ResponseWriter, st *store, limit, from string) {
	all, _ := st.all()
	version := s.now()
	start, _ := strconv.Atoi(from) // 0 is the first page
	start = min(start, len(all))
	end := len(all)
	if n, err := strconv.Atoi(limit); err == nil && n > 0 {
		end = min(end, start+n)
	}
	next := ""
	if end < len(all) {
		next = strconv.Itoa(end)
	}
	if st.json {
		w.Header().Set("Content-Type", typeJSON)
		st.listJSON(w, all[start:end], version, next)
		return
	}
	w.Header().Set("Content-Type", typeProtobuf)
	_, _ = w.Write(st.listProtobuf(all[start:end], version, next)) // the client may have gone
}

func (s *store) listJSON(w http.ResponseWriter, page []*entry, version uint64, next string) {
	b := bufio.NewWriterSize(w, 64<<10)
	fmt.Fprintf(b, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d","continue":%q},"items":[`, s.GVK.Kind, s.GVK.GroupVersion(), version, next)
	for i, e := range page {
		if i > 0 {
			_ = b.WriteByte(',')
		}
		_, _ = b.Write(e.body)
	}
	_, _ = b.WriteString("]}")
	_ = b.Flush() // the client may have gone
}

// listProtobuf: all list types have ListMeta as field 1 and items as field 2.
func (s *store) listProtobuf(page []*entry, version uint64, next string) []byte {
	meta := appendString(nil, 2, strconv.FormatUint(version, 10))
	if next != "" {
		meta = appendString(meta, 3, next)
	}
	list := appendBytes(nil, 1, meta)
	for _, e := range page {
		list = appendBytes(list, 2, e.body)
	}
	return s.envelope(s.GVK.Kind+"List", list)
}

// envelope is runtime.Unknown behind Kubernetes' magic number.
func (s *store) envelope(kind string, body []byte) []byte {
	typeMeta := appendString(appendString(nil, 1, s.GVK.GroupVersion().String()), 2, kind)
	b := make([]byte, 0, len(body)+len(typeMeta)+24)
	b = append(b, 'k', '8', 's', 0)
	return appendBytes(appendBytes(b, 1, typeMeta), 2, body)
}

// watcher is one watch.
type watcher struct {
	*store
	w         *bufio.Writer
	flush     *http.ResponseController
	bookmarks bool
}

// initial sends the list of a WatchList and the bookmark that ends it.
func (x *watcher) initial(version uint64) (int, error) {
	all, next := x.all()
	for _, e := range all {
		if err := x.event("ADDED", e.body); err != nil {
			return 0, err
		}
	}
	if err := x.event("BOOKMARK", x.bookmark(version)); err != nil {
		return 0, err
	}
	return next, x.send()
}

// bookmark is an object with nothing but the version and the mark of the list's end.
func (x *watcher) bookmark(version uint64) []byte {
	const mark = "k8s.io/initial-events-end"
	if x.json {
		return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","annotations":{%q:"true"}}}`, x.GVK.Kind, x.GVK.GroupVersion(), version, mark)
	}
	// ObjectMeta: resourceVersion is field 6, annotations are field 12.
	meta := appendString(nil, 6, strconv.FormatUint(version, 10))
	meta = appendBytes(meta, 12, appendString(appendString(nil, 1, mark), 2, "true"))
	return appendBytes(nil, 1, meta)
}

// follow sends what is written until the request or the watch's time ends.
func (x *watcher) follow(r *http.Request, next int, end <-chan time.Time) {
	_ = x.send()
	for {
		events, moved := x.from(next)
		for _, e := range events {
			if x.event(e.typ, e.body) != nil {
				return
			}
		}
		next += len(events)
		if len(events) > 0 && x.send() != nil {
			return
		}
		select {
		case <-moved:
		case <-r.Context().Done():
			return
		case <-end:
			return
		}
	}
}

func (x *watcher) send() error {
	if err := x.w.Flush(); err != nil {
		return err
	}
	return x.flush.Flush()
}

// event writes one frame: a line of JSON, or a WatchEvent behind its length.
func (x *watcher) event(typ string, body []byte) error {
	if x.json {
		_, err := fmt.Fprintf(x.w, "{\"type\":%q,\"object\":%s}\n", typ, body)
		return err
	}
	object := appendBytes(nil, 1, x.envelope(x.GVK.Kind, body)) // RawExtension
	frame := appendBytes(appendString(nil, 1, typ), 2, object)
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(frame))) //nolint:gosec // an object is small
	if _, err := x.w.Write(length[:]); err != nil {
		return err
	}
	_, err := x.w.Write(frame)
	return err
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

func appendString(b []byte, num protowire.Number, v string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
}
