package k8swatch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

const unparsable = "apiVersion: v1\nkind: [Service\n"

// A file that does not parse could hold any kind: what the others hold flows, no
// list is complete until it is mended.
func TestDirBrokenFileAtTheStart(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+unparsable)
	w.old("b.yaml", service("x", "two"))
	w.start()
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if !has(s, kinds.Service, "x", "one") || !has(s, kinds.Service, "x", "two") {
		t.Errorf("what can be read did not flow:\n%s", show(s))
	}
	for _, k := range s.Kinds() {
		if k.Complete() {
			t.Errorf("%s is complete", k.Kind)
		}
	}
	if p := s.Problems(); len(p) != 1 || !strings.Contains(p[0].Message, "a.yaml: line 6: did not find expected") {
		t.Errorf("problems: %v", p)
	}

	w.replace("a.yaml", service("x", "three"))
	w.untilShown(`Service observed 0: x/three x/two`)
}

func TestDirBrokenFileLater(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+service("x", "two"))
	w.old("b.yaml", service("x", "three"))
	w.start()
	w.until("observed", allObserved)
	w.replace("a.yaml", service("x", "one")+"---\n"+unparsable)
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if !allObserved(s) || !has(s, kinds.Service, "x", "two") {
		t.Errorf("something was lost:\n%s", show(s))
	}
	// Other files are followed all the same.
	w.replace("b.yaml", service("x", "four"))
	w.until("followed", func(s *index.Snapshot) bool {
		return has(s, kinds.Service, "x", "four") && !has(s, kinds.Service, "x", "three")
	})
	w.replace("a.yaml", service("x", "one"))
	w.untilShown(`Service observed 0: x/four x/one`)
}

// A value of the wrong type is the matter of its document alone.
func TestDirBrokenDocument(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+service("x", "two"))
	w.start()
	w.until("observed", allObserved)
	w.replace("a.yaml", strings.Replace(service("x", "one"), "80", "eighty", 1)+"---\n"+strings.Replace(service("x", "two"), "80", "8080", 1))
	s := w.until("changed", func(s *index.Snapshot) bool { return len(s.Problems()) > 0 })
	if got := port(s, "x", "one"); got != 80 {
		t.Errorf("the last good version is lost: port %d", got)
	}
	if got := port(s, "x", "two"); got != 8080 {
		t.Errorf("the document beside it did not flow: port %d", got)
	}
	p := s.Problems()[0]
	if p.Object.String() != "Service x/one" || p.Field != "spec.ports.port" || !strings.Contains(p.Message, "a.yaml:1:") {
		t.Errorf("problem %+v", p)
	}
	if s.Kind(kinds.Service).State != index.Observed {
		t.Errorf("the kind is %s", s.Kind(kinds.Service).State)
	}
}

func port(s *index.Snapshot, ns, name string) int32 {
	o := s.Object(index.ObjectKey{Kind: kinds.Service, Namespace: ns, Name: name})
	if o == nil {
		return -1
	}
	return o.Body.(*corev1.Service).Spec.Ports[0].Port
}

// Without a last good version only the kind of the broken document waits.
func TestDirBrokenDocumentAtTheStart(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", strings.Replace(service("x", "one"), "80", "eighty", 1)+"---\n"+service("x", "two")+"---\n"+proxy("x", "p", "p.test"))
	w.start()
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if s.Kind(kinds.Service).Complete() || !has(s, kinds.Service, "x", "two") || !s.Kind(kinds.HTTPProxy).Complete() {
		t.Errorf("now:\n%s", show(s))
	}
	w.replace("a.yaml", service("x", "one"))
	w.untilShown(`Service observed 0: x/one`)
}

func TestDirWhatIsBeingWrittenDeletesNothing(t *testing.T) {
	w := newDirWorld(t)
	two := service("x", "one") + "---\n" + service("x", "two")
	w.old("a.yaml", two)
	o := w.options()
	o.Settle = time.Hour // nothing is ever still for so long
	w.startWith(o)
	w.until("observed", allObserved)
	for i, half := range []string{"", service("x", "one"), two[:len(two)-20], "gone", service("x", "one")} {
		if w.overwrite("a.yaml", half); half == "gone" {
			w.remove("a.yaml")
		}
		// Another file's change shows that the folder was looked at again.
		marker := fmt.Sprintf("marker-%d", i)
		w.replace("b.yaml", service("x", marker))
		s := w.until(marker, func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", marker) })
		if !has(s, kinds.Service, "x", "one") || !has(s, kinds.Service, "x", "two") || len(s.Problems()) > 0 {
			t.Errorf("after %q:\n%s", half, show(s))
		}
	}
	w.overwrite("a.yaml", two+"---\n"+service("x", "three"))
	w.until("written", func(s *index.Snapshot) bool { return has(s, kinds.Service, "x", "three") })
}

// What was renamed into its place is whole: it is believed at once.
func TestDirWhatIsRenamedIsBelieved(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one")+"---\n"+service("x", "two"))
	w.old("b.yaml", service("x", "three"))
	o := w.options()
	o.Settle = time.Hour
	w.startWith(o)
	w.until("observed", allObserved)
	w.replace("a.yaml", service("x", "one"))
	w.replace("b.yaml", "a: [")
	w.until("smaller", func(s *index.Snapshot) bool {
		return !has(s, kinds.Service, "x", "two") && s.Kind(kinds.Service).State == index.Failing
	})
}

func TestDirWhatIsStillIsBelieved(t *testing.T) {
	w := newDirWorld(t)
	w.old("a.yaml", service("x", "one"))
	w.old("b.yaml", service("x", "two"))
	w.start()
	w.until("observed", allObserved)
	w.overwrite("a.yaml", "")
	w.untilShown(`Service observed 0: x/two`)
	w.remove("b.yaml")
	w.untilShown(``)
}

// An empty file that was written just now may be one that another process
// truncated and is about to fill: its folder is not complete yet.
func TestDirEmptyFileAtTheStart(t *testing.T) {
	w := newDirWorld(t)
	w.overwrite("a.yaml", "")
	o := w.options()
	o.Settle = time.Hour
	w.startWith(o)
	s := w.until("listing", kindIs(kinds.Service, index.Listing))
	if s.Kind(kinds.Service).Complete() {
		t.Error("complete")
	}
	w.overwrite("a.yaml", service("x", "one"))
	w.untilShown(`Service observed 0: x/one`)
}

func TestDirFolderGoneProvesNothing(t *testing.T) {
	w := newDirWorld(t)
	w.path = filepath.Join(w.path, "folder")
	must(t, os.Mkdir(w.path, 0o755))
	w.old("a.yaml", service("x", "one"))
	o := w.options()
	o.Rescan = 10 * time.Millisecond
	w.startWith(o)
	w.until("observed", allObserved)

	must(t, os.Rename(w.path, w.path+".away"))
	s := w.until("failing", kindIs(kinds.Service, index.Failing))
	if !has(s, kinds.Service, "x", "one") || !allObserved(s) || len(s.Problems()) != 1 {
		t.Errorf("gone:\n%s", show(s))
	}
	must(t, os.Mkdir(w.path, 0o755))
	s = w.until("replaced", func(s *index.Snapshot) bool {
		return strings.Contains(s.Kind(kinds.Service).LastError, "replaced by an empty")
	})
	if !has(s, kinds.Service, "x", "one") {
		t.Errorf("replaced by an empty one:\n%s", show(s))
	}
	w.replace("b.yaml", service("x", "two"))
	w.untilShown(`Service observed 0: x/two`)
}

// Not every change makes an event (here: a file that is reached by a link). The
// regular look at all files finds what was missed.
func TestDirWithoutEvents(t *testing.T) {
	w := newDirWorld(t)
	elsewhere := filepath.Join(t.TempDir(), "a.yaml")
	must(t, os.WriteFile(elsewhere, []byte(service("x", "one")), 0o600))
	must(t, os.Symlink(elsewhere, filepath.Join(w.path, "a.yaml")))
	o := w.options()
	o.Rescan = 10 * time.Millisecond
	w.startWith(o)
	w.until("observed", allObserved)
	must(t, os.WriteFile(elsewhere, []byte(service("x", "another")), 0o600))
	w.untilShown(`Service observed 0: x/another`)
}
