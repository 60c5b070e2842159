package workload

import (
	"fmt"
	"testing"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

// Edits fall on the same hosts, in the same form, whatever the number of hosts is:
// what one costs can be compared.
func TestEditsDoNotDependOnTheSize(t *testing.T) {
	small, large := New(Smallest, Anywhere()), New(10*Smallest, Anywhere())
	for _, e := range Edits {
		for turn := range 130 {
			h, a := small.Next(e)
			i, b := large.Next(e)
			if h.FQDN != i.FQDN || manifest(t, a) != manifest(t, b) {
				t.Fatalf("%s %d is about %s or %s", e, turn, h.FQDN, i.FQDN)
			}
		}
	}
}

// No edit is the one before it once more, which would change nothing.
func TestEachEditChangesSomething(t *testing.T) {
	w := New(Smallest, Anywhere())
	was := map[string]string{}
	for o := range w.Objects() {
		was[name(o)] = manifest(t, []Change{{Object: o}})
	}
	for _, e := range Edits {
		for turn := range 130 {
			_, changes := w.Next(e)
			changed := false
			for _, c := range changes {
				now := manifest(t, []Change{c})
				changed = changed || c.Deleted || was[name(c.Object)] != now
				was[name(c.Object)] = now
			}
			if !changed {
				t.Errorf("%s %d changes nothing", e, turn)
			}
		}
	}
}

func name(o fixture.Object) string {
	return fmt.Sprint(o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
}

func manifest(t *testing.T, changes []Change) string {
	t.Helper()
	s := ""
	for _, c := range changes {
		m, err := fixture.Manifest(c.Object)
		if err != nil {
			t.Fatal(err)
		}
		s += fmt.Sprint(m, c.Deleted)
	}
	return s
}
