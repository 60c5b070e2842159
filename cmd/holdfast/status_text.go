package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/index"
)

// writeStatus prints a status for a person: what is wrong stands out by being
// there at all.
func writeStatus(out io.Writer, st admin.Status) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "holdfast %s, revision %d, source %s\n", st.Version, st.Revision, orDash(st.Source))
	writeFindings(w, st.Attention)
	writeKinds(w, st.Kinds)
	writeResources(w, st.Resources)
	writeStreams(w, st)
	writeWithheld(w, st.Withheld)
	writeProblems(w, st)
	return w.Flush()
}

func writeKinds(w io.Writer, kinds []admin.Kind) {
	fmt.Fprintln(w, "\nKIND\tSTATE\tCOMPLETE\tOBJECTS\tSINCE\tLAST ERROR")
	for _, k := range kinds {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", k.Kind, k.State, completeness(k), k.Objects, clock(k.Since), orDash(k.Error))
	}
}

// completeness says up to which version the kind is known; a folder has no
// versions.
func completeness(k admin.Kind) string {
	switch {
	case !k.Complete:
		return "NO"
	case k.Frontier == "" || k.Frontier == "0":
		return "yes"
	}
	return "up to " + k.Frontier
}

func writeResources(w io.Writer, counts []admin.TypeCount) {
	fmt.Fprintln(w, "\nRESOURCE\tLIVE\tTOMBSTONES")
	for _, c := range counts {
		fmt.Fprintf(w, "%s\t%d\t%d\n", lastPart(c.Type), c.Resources, c.Tombstones)
	}
}

func writeStreams(w io.Writer, st admin.Status) {
	if len(st.Streams) == 0 {
		fmt.Fprintln(w, "\nNo Envoy is connected.")
		return
	}
	fmt.Fprintln(w, "\nENVOY\tPEER\tCONNECTED\tTYPE\tHELD\tIN FLIGHT\tSINCE\tBEHIND IT\tREJECTED\tACKS\tNACKS")
	for _, s := range st.Streams {
		for _, t := range s.Types {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%d\t%d\t%d\t%d\n", orDash(s.Node), s.Peer, clock(s.Connected), lastPart(t.Type),
				t.Held, t.InFlight, clock(t.InFlightSince), t.Pending, len(t.Quarantined), t.Acks, t.Nacks)
		}
		if len(s.Types) == 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\t(has asked for nothing yet)\n", orDash(s.Node), s.Peer, clock(s.Connected))
		}
	}
}

func writeWithheld(w io.Writer, list []admin.Withheld) {
	if len(list) == 0 {
		fmt.Fprintln(w, "\nNothing is withheld.")
		return
	}
	fmt.Fprintln(w, "\nWITHHELD\tACTION\tCOUNT\tENVOYS\tMISSING\tSINCE\tREASON\tRESOURCES")
	for _, x := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", lastPart(x.Type), x.Action, x.Count, x.Envoys, lacks(x.Missing), clock(x.Since), orDash(x.Reason), strings.Join(x.Resources, " "))
	}
}

// shownProblems is how many problems the text shows.
const shownProblems = 50

func writeProblems(w io.Writer, st admin.Status) {
	if st.ProblemCount == 0 {
		fmt.Fprintln(w, "\nNo problems.")
		return
	}
	fmt.Fprintln(w, "\nPROBLEM\tSEVERITY\tFIELD\tMESSAGE")
	shown := st.Problems[:min(len(st.Problems), shownProblems)]
	for _, p := range shown {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.Object, p.Severity, orDash(p.Field), p.Message)
	}
	more(w, st.ProblemCount-len(shown))
}

func lacks(missing []index.Lack) string {
	out := make([]string, 0, len(missing))
	for _, l := range missing {
		s := string(l.Kind)
		if l.Held > 0 {
			s += "≥" + l.Held.String()
		}
		out = append(out, s)
	}
	return orDash(strings.Join(out, ","))
}

func objects(keys []index.ObjectKey) string {
	out := make([]string, 0, len(keys))
	for _, k := range keys {
		out = append(out, k.String())
	}
	return orDash(strings.Join(out, ", "))
}

func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
