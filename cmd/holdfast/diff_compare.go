package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-xds/holdfast/admin"
)

// difference between what an Envoy says that it has and what holdfast knows that
// it holds.
type difference struct {
	Node     string           `json:"node"`
	Revision uint64           `json:"revision"`
	Types    []typeDifference `json:"types"`
}

// typeDifference is that of one resource type.
type typeDifference struct {
	Type string `json:"type"` // type URL
	// Same counts what is on both sides in the same version, or by name alone where
	// Envoy tells no versions. OnTheWay counts what is left out of the comparison.
	Same     int `json:"same"`
	OnTheWay int `json:"onTheWay"`
	// Missing names are held by the ACKs, and not there; Extra ones are the reverse.
	Missing []string `json:"missing"`
	Extra   []string `json:"extra"`
	// Draining names are there and gone for holdfast, and the Envoy still asks for
	// them: it keeps them until connections of a listener's old version have ended.
	Draining  []string         `json:"draining"`
	Different []versionsOfName `json:"different"`
}

type versionsOfName struct {
	Name     string `json:"name"`
	Envoy    string `json:"envoy"`
	Holdfast string `json:"holdfast"`
}

func (d *difference) count() int {
	n := 0
	for _, t := range d.Types {
		n += len(t.Missing) + len(t.Extra) + len(t.Different)
	}
	return n
}

func compareHoldings(h *admin.Holdings, has map[string]reported) *difference {
	d := &difference{Node: h.Node, Revision: uint64(h.Revision), Types: []typeDifference{}}
	for i := range h.Types {
		d.Types = append(d.Types, compareType(&h.Types[i], has[h.Types[i].Type]))
	}
	return d
}

func compareType(h *admin.TypeHoldings, has reported) typeDifference {
	out := typeDifference{Type: h.Type, OnTheWay: len(h.Unsettled), Missing: []string{}, Extra: []string{}, Draining: []string{}, Different: []versionsOfName{}}
	moving, gone := setOf(h.Unsettled), setOf(h.Gone)
	for name, held := range h.Held {
		version, there := has[name]
		switch {
		case moving[name]:
		case !there:
			out.Missing = append(out.Missing, name)
		case version != "" && bodyOf(version) != bodyOf(held):
			out.Different = append(out.Different, versionsOfName{name, version, held})
		default:
			out.Same++
		}
	}
	for name := range has {
		_, held := h.Held[name]
		switch {
		case held || moving[name]:
		case gone[name]:
			out.Draining = append(out.Draining, name)
		default:
			out.Extra = append(out.Extra, name)
		}
	}
	slices.Sort(out.Missing)
	slices.Sort(out.Extra)
	slices.Sort(out.Draining)
	slices.SortFunc(out.Different, func(a, b versionsOfName) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// bodyOf gives the part of a version token that stands for the body, "h1.<digest>":
// the rest says what it rests on, which moves on while the body stays.
func bodyOf(version string) string {
	form, rest, _ := strings.Cut(version, ".")
	digest, _, _ := strings.Cut(rest, ".")
	return form + "." + digest
}

// maxListed is how many names of one sort the text shows.
const maxListed = 20

func writeDiffText(out io.Writer, d *difference) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Envoy %s, compared at revision %d\n\nTYPE\tSAME\tMISSING\tEXTRA\tDIFFERENT\tON THE WAY\tDRAINING\n", d.Node, d.Revision)
	for _, t := range d.Types {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", lastPart(t.Type), t.Same, len(t.Missing), len(t.Extra), len(t.Different), t.OnTheWay, len(t.Draining))
	}
	for _, t := range d.Types {
		writeNames(w, "missing in Envoy, though it acknowledged it", t.Type, t.Missing)
		writeNames(w, "only in Envoy", t.Type, t.Extra)
		for i, x := range t.Different[:min(len(t.Different), maxListed)] {
			if i == 0 {
				fmt.Fprintf(w, "\n%s, different:\n", lastPart(t.Type))
			}
			fmt.Fprintf(w, "  %s\tEnvoy has %s\tacknowledged was %s\n", x.Name, x.Envoy, x.Holdfast)
		}
		more(w, len(t.Different)-maxListed)
	}
	if d.count() == 0 {
		fmt.Fprintln(w, "\nNo difference.")
	}
	return w.Flush()
}

func writeNames(w io.Writer, how, typeURL string, names []string) {
	if len(names) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s, %s:\n", lastPart(typeURL), how)
	for _, name := range names[:min(len(names), maxListed)] {
		fmt.Fprintf(w, "  %s\n", name)
	}
	more(w, len(names)-maxListed)
}
