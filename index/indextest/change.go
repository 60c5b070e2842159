package indextest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// Start is the time from which the times in scripts count.
var Start = time.Unix(1_000_000, 0)

// New makes an index over Rules with source "s".
func New() *index.Index {
	ix := Nameless()
	ix.Apply(index.Cause{}, index.SourceID{ID: "s"})
	return ix
}

// Nameless makes an index whose source has not told its id.
func Nameless() *index.Index {
	ix, err := index.New(Rules{})
	if err != nil {
		panic(err)
	}
	return ix
}

// Changes parses several changes, one a line; empty lines and those that begin
// with # do not count.
func Changes(text string) []index.Change {
	var out []index.Change
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, Change(line))
		}
	}
	return out
}

// Change parses one change. It panics where a test is written wrongly.
//
//	host a svc=web @12             a watch event
//	eager host a svc=web @12       seen before the list ended
//	delete host a @13              a watch event
//	list host @20 [; a svc=web @12 ; b @14]
//	bookmark host @30
//	state host forbidden [at=10s] [why]
//	source s2
func Change(line string) index.Change {
	head, rest, _ := strings.Cut(line, " ")
	switch head {
	case "eager":
		return index.Upsert{Object: Object(rest)}
	case "delete":
		o := Object(rest)
		return index.Delete{Key: o.ObjectKey, Version: o.Version}
	case "list":
		return list(rest)
	case "bookmark":
		w := strings.Fields(rest)
		return index.Bookmark{Kind: index.Kind(w[0]), Version: version(w[1])}
	case "state":
		return state(strings.Fields(rest))
	case "source":
		return index.SourceID{ID: rest}
	}
	return index.Upsert{Object: Object(line), InOrder: true}
}

// Object parses "kind name key=value … @version".
func Object(line string) *index.Object {
	w := strings.Fields(line)
	o := &index.Object{ObjectKey: index.ObjectKey{Kind: index.Kind(w[0]), Name: w[1]}}
	body := Fields{}
	for _, word := range w[2:] {
		if word[0] == '@' {
			o.Version = version(word)
			continue
		}
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			panic(fmt.Sprintf("indextest: %q in %q", word, line))
		}
		body[key] = value
	}
	o.Body = body
	return o
}

func list(rest string) index.Change {
	parts := strings.Split(rest, ";")
	head := strings.Fields(parts[0])
	r := index.Replace{Kind: index.Kind(head[0]), Version: version(head[1])}
	for _, p := range parts[1:] {
		r.Objects = append(r.Objects, Object(head[0]+" "+p))
	}
	return r
}

func state(w []string) index.Change {
	s := index.KindStatus{Kind: index.Kind(w[0]), State: index.State(w[1]), At: Start}
	for _, word := range w[2:] {
		if at, ok := strings.CutPrefix(word, "at="); ok {
			d, err := time.ParseDuration(at)
			if err != nil {
				panic(err)
			}
			s.At = Start.Add(d)
			continue
		}
		s.Error = strings.TrimSpace(s.Error + " " + word)
	}
	return s
}

func version(word string) index.ResourceVersion {
	v, err := strconv.ParseUint(strings.TrimPrefix(word, "@"), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("indextest: version %q", word))
	}
	return index.ResourceVersion(v)
}
