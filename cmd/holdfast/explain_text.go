package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/index"
)

// writeExplanation prints an explanation for a person.
func writeExplanation(out io.Writer, x *admin.Explanation) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s, at revision %d\n", x.Subject, x.Revision)
	writeFindings(w, x.Findings)
	writeObjects(w, x)
	writeResourceLines(w, x)
	writeHolders(w, x.Resources)
	writeBasis(w, x.Resources)
	writeDerivations(w, x)
	writeChanges(w, x.Changes)
	return w.Flush()
}

func writeFindings(w io.Writer, findings []admin.Finding) {
	if len(findings) > 0 {
		fmt.Fprintln(w)
	}
	for _, f := range findings {
		fmt.Fprintf(w, "%s: %s\n", strings.ToUpper(string(f.Severity)), f.Text)
		if f.Action != "" {
			fmt.Fprintf(w, "  do: %s\n", f.Action)
		}
	}
}

func writeObjects(w io.Writer, x *admin.Explanation) {
	if len(x.Objects) == 0 {
		return
	}
	fmt.Fprintln(w, "\nOBJECT\tVERSION\tSTATE")
	for _, o := range x.Objects {
		fmt.Fprintf(w, "%s\t%s\t%s\n", o.ObjectKey, orDash(o.Version), o.State)
	}
	more(w, x.OmittedObjects)
}

func writeResourceLines(w io.Writer, x *admin.Explanation) {
	if len(x.Resources) == 0 {
		fmt.Fprintln(w, "\nNothing is made of it.")
		return
	}
	fmt.Fprintln(w, "\nRESOURCE\tSTATE\tVERSION\tENVOYS\tREVISION\tMADE FROM")
	for i := range x.Resources {
		r := &x.Resources[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", r.ResourceKey, r.State, orDash(r.Version), holderStates(r.Envoys), r.Modified, objects(r.Sources))
	}
	more(w, x.OmittedResources)
}

// holderStates counts the Envoys by what they have: "2 current, 1 withheld".
func holderStates(holders []admin.HolderView) string {
	counts := map[string]int{}
	var order []string
	for _, h := range holders {
		if counts[h.State]++; counts[h.State] == 1 {
			order = append(order, h.State)
		}
	}
	parts := make([]string, 0, len(order))
	for _, state := range order {
		parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
	}
	return orDash(strings.Join(parts, ", "))
}

// writeHolders lists the Envoys that do not simply have the current version.
func writeHolders(w io.Writer, resources []admin.ResourceView) {
	head := "\nENVOY\tRESOURCE\tSTATE\tHOLDS\tWHY\n"
	for i := range resources {
		r := &resources[i]
		for j := range r.Envoys {
			h := &r.Envoys[j]
			if h.State == "current" || h.State == "not asked" {
				continue
			}
			fmt.Fprintf(w, "%s%s\t%s\t%s\t%s\t%s\n", head, cmp.Or(h.Node, h.Peer), r.ResourceKey, h.State, orDash(h.Version), holderReason(h))
			head = ""
		}
	}
}

func holderReason(h *admin.HolderView) string {
	switch {
	case h.Quarantined != nil:
		return "the Envoy says: " + h.Quarantined.Message
	case h.Withheld != nil:
		return fmt.Sprintf("%s withheld since %s: %s, missing %s", h.Withheld.Action, clock(h.Withheld.Since), h.Withheld.Reason, lacks(h.Withheld.Missing))
	case !h.Sent.IsZero():
		return "sent " + clock(h.Sent) + ", not answered"
	}
	return "-"
}

func writeBasis(w io.Writer, resources []admin.ResourceView) {
	head := "\nRESOURCE\tRESTS ON\n"
	for i := range resources {
		parts := make([]string, 0, len(resources[i].Basis))
		for _, b := range resources[i].Basis {
			parts = append(parts, string(b.Kind)+" "+basis(b))
		}
		if len(parts) > 0 {
			fmt.Fprintf(w, "%s%s\t%s\n", head, resources[i].ResourceKey, strings.Join(parts, "; "))
			head = ""
		}
	}
}

// basis says how a resource rests on a kind: "found up to 12, needs strict".
func basis(b admin.BasisView) string {
	out := "none found"
	if b.Found {
		out = "found"
	}
	if b.Version != "" {
		out += " up to " + b.Version
	}
	if len(b.Needs) > 0 {
		out += ", needs " + strings.Join(b.Needs, " and ")
	}
	if !b.Complete {
		out += ", NOT COMPLETE"
	}
	return out
}

func writeDerivations(w io.Writer, x *admin.Explanation) {
	if len(x.Derivations) == 0 {
		return
	}
	fmt.Fprintln(w, "\nDERIVATION\tREADS\tMAKES")
	for _, d := range x.Derivations {
		reads := make([]string, 0, len(d.Reads))
		for _, r := range d.Reads {
			reads = append(reads, r.String())
		}
		lines := max(len(reads), len(d.Makes), 1)
		for i := range lines {
			fmt.Fprintf(w, "%s\t%s\t%s\n", nth([]string{string(d.ID)}, i), nth(reads, i), nth(resourceNames(d.Makes), i))
		}
	}
	more(w, x.OmittedDerivations)
}

func writeChanges(w io.Writer, changes []admin.Change) {
	if len(changes) == 0 {
		return
	}
	fmt.Fprintln(w, "\nCHANGED\tREVISION\tTRACE\tRESOURCES")
	for _, c := range changes {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", clock(c.At), c.Revision, orDash(c.Trace), few(resourceNames(c.Resources)))
	}
}

func resourceNames(keys []index.ResourceKey) []string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, k.String())
	}
	return out
}

// few gives the first few names, and how many more there are.
func few(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func nth(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

func more(w io.Writer, omitted int) {
	if omitted > 0 {
		fmt.Fprintf(w, "(and %d more)\n", omitted)
	}
}
