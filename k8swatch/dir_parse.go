package k8swatch

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// kindFile is the Kind of a Problem that is about a file and no single object.
const kindFile index.Kind = "File"

// reading is what one file says. It is immutable.
type reading struct {
	path   string
	claims []*claim
	// broken: a part of the file can't be read. It might hold anything.
	broken   bool
	problems []index.Problem
}

// claim is what one document says of one object.
type claim struct {
	path string
	pos  int
	// hash of the text: the same text makes the same object.
	hash uint64
	key  index.ObjectKey
	// object is nil when the document has an error; then the last good one of
	// the same key is used, if there is one.
	object *index.Object
	// notes are what is wrong with the document; err is set if it has an error.
	notes []fieldError
	err   error
}

// parser makes the reading of one file.
type parser struct {
	kinds []kinds.Watched
	old   map[uint64]*claim // by hash, of the file's last reading
	out   *reading
}

func parse(watched []kinds.Watched, name string, text []byte, old *reading) *reading {
	p := &parser{kinds: watched, old: map[uint64]*claim{}, out: &reading{path: name}}
	if old != nil {
		for _, c := range old.claims {
			p.old[c.hash] = c
		}
	}
	if path.Ext(name) == ".json" {
		docs, err := splitJSON(text)
		for _, d := range docs {
			p.object(d, d.text, typeMeta{})
		}
		if err != nil {
			p.broke(err)
		}
		return p.out
	}
	for _, d := range splitYAML(text) {
		p.document(d)
	}
	return p.out
}

func (p *parser) document(d document) {
	j, err := d.toJSON()
	if err != nil {
		p.broke(err)
		return
	}
	p.object(d, j, typeMeta{})
}

type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func (t typeMeta) isList() bool { return strings.HasSuffix(t.Kind, "List") && t.Kind != "List" }

// object takes one JSON object: an item, or a list of them. within is the type
// of the list that it is in; items of a typed list need not name their own.
func (p *parser) object(d document, j []byte, within typeMeta) {
	var t typeMeta
	if err := json.Unmarshal(j, &t); err != nil {
		p.broke(fmt.Errorf("line %d: %w", d.line, err))
		return
	}
	if t.Kind == "" && within.isList() {
		t = typeMeta{within.APIVersion, strings.TrimSuffix(within.Kind, "List")}
	}
	switch {
	case t.Kind == "":
		if string(j) != "null" {
			p.warn(d, p.file(), "", "has no kind, so it is no Kubernetes object; ignored")
		}
	case t.Kind == "List", t.isList() && p.watched(typeMeta{t.APIVersion, strings.TrimSuffix(t.Kind, "List")}) != nil:
		p.list(d, j, t)
	default:
		if w := p.watched(t); w != nil {
			p.take(d, j, w)
		} else {
			p.otherVersion(d, t)
		}
	}
}

func (p *parser) list(d document, j []byte, t typeMeta) {
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(j, &list); err != nil {
		p.broke(fmt.Errorf("line %d: items of %s: %w", d.line, t.Kind, err))
		return
	}
	for _, raw := range list.Items {
		p.object(d, raw, t)
	}
}

func (p *parser) watched(t typeMeta) *kinds.Watched {
	for i := range p.kinds {
		w := &p.kinds[i]
		if w.GVK.Kind == t.Kind && w.GVK.GroupVersion().String() == t.APIVersion {
			return w
		}
	}
	return nil
}

// otherVersion warns of an object that would mean something if its version were
// the one that is read. Other kinds are none of our business.
func (p *parser) otherVersion(d document, t typeMeta) {
	for _, w := range p.kinds {
		if w.GVK.Kind == t.Kind && (path.Dir(t.APIVersion) == w.GVK.Group || t.APIVersion == "extensions/v1beta1") {
			p.warn(d, p.file(), "apiVersion", fmt.Sprintf("%s in %s is not read; use %s", t.Kind, t.APIVersion, w.GVK.GroupVersion()))
		}
	}
}

// take makes the claim of an object of a watched kind.
func (p *parser) take(d document, j []byte, w *kinds.Watched) {
	hash := xxhash.Sum64(j)
	c := &claim{hash: hash}
	if same := p.old[hash]; same != nil && same.key.Kind == w.Kind {
		*c = *same
	} else {
		c.key, c.object, c.notes, c.err = claimed(j, w)
	}
	c.path, c.pos = p.out.path, len(p.out.claims)
	p.out.claims = append(p.out.claims, c)
	for _, n := range c.notes {
		p.warn(d, c.key, n.field, n.message)
	}
	if c.err != nil {
		p.fail(d, c.key, c.err)
	}
}

func claimed(j []byte, w *kinds.Watched) (index.ObjectKey, *index.Object, []fieldError, error) {
	key, err := readKey(j, w)
	if err != nil {
		return index.ObjectKey{Kind: w.Kind}, nil, nil, err
	}
	o, notes, err := decode(j, w)
	if err != nil {
		return key, nil, nil, err
	}
	return key, &index.Object{ObjectKey: key, Body: o}, notes, nil
}

func (p *parser) file() index.ObjectKey { return index.ObjectKey{Kind: kindFile, Name: p.out.path} }

// broke notes that a part of the file can't be read at all.
func (p *parser) broke(err error) {
	p.out.broken = true
	p.out.problems = append(p.out.problems, brokenFile(p.out.path, err))
}

// What a folder that is followed does about it.
const (
	lastReadStays = "; what was last read of it stays"
	lastGoodStays = "; the last good version, if there is one, stays"
)

func brokenFile(name string, err error) index.Problem {
	return index.Problem{
		Object: index.ObjectKey{Kind: kindFile, Name: name}, Severity: index.Error, Reason: "Unreadable",
		Message: fmt.Sprintf("%s: %v", name, err) + lastReadStays,
	}
}

func (p *parser) fail(d document, key index.ObjectKey, err error) {
	field, message := explain(err)
	p.out.problems = append(p.out.problems, index.Problem{
		Object: key, Severity: index.Error, Field: field, Reason: "Undecodable",
		Message: fmt.Sprintf("%s:%d: %s", p.out.path, d.line, message) + lastGoodStays,
	})
}

// maxWarnings of one file are kept.
const maxWarnings = 20

func (p *parser) warn(d document, key index.ObjectKey, field, message string) {
	if len(p.out.problems) < maxWarnings {
		p.out.problems = append(p.out.problems, index.Problem{
			Object: key, Severity: index.Warning, Field: field, Message: fmt.Sprintf("%s:%d: %s", p.out.path, d.line, message),
		})
	}
}
