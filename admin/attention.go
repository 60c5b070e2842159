package admin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// slowAnswer is how long an Envoy may take for an answer before a person should
// know. A listener with thousands of chains takes it half a second.
const slowAnswer = 5 * time.Second

// attention says what a person must know at first sight, the worst first. It is on
// top of the page and of `holdfast status`.
func (s *Server) attention(st *Status) []Finding {
	var out []Finding
	if !st.Serving {
		out = append(out, Finding{Severity: Bad, Text: "Envoys cannot connect: the xDS listener is not serving."})
	}
	var listing []string
	for i := range st.Kinds {
		k := &st.Kinds[i]
		if !k.Complete && (k.State == string(index.Unknown) || k.State == string(index.Listing)) && k.Error == "" {
			listing = append(listing, k.Kind)
		} else if f, ok := kindFinding(k, st.waitingFor(k.Kind)); ok {
			out = append(out, f)
		}
	}
	if listing != nil {
		out = append(out, Finding{Severity: Neutral, Text: "Not yet listed for the first time: " + strings.Join(listing, ", ") + "."})
	}
	for i := range st.Streams {
		out = append(out, s.streamFindings(&st.Streams[i])...)
	}
	for _, d := range st.Departed {
		if f, ok := s.departedFinding(d); ok {
			out = append(out, f)
		}
	}
	for i := range st.Withheld {
		if w := &st.Withheld[i]; w.Guarded {
			out = append(out, guardFinding(w))
		}
	}
	if f, ok := lagFinding(st); ok {
		out = append(out, f)
	}
	if n := st.errors; n > 0 {
		out = append(out, Finding{
			Severity: Warn, Text: fmt.Sprintf("%s of users' objects: a part of each object is not served.", plural(n, "error")),
			Action: "See the problems, each with its object and field.",
		})
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return a.Severity.rank() - b.Severity.rank() })
	return out
}

// kindFinding: a kind that fails, or is not complete. One that is being listed for
// the first time is no news.
func kindFinding(k *Kind, waiting int) (Finding, bool) {
	failing := k.State == string(index.Forbidden) || k.State == string(index.Failing)
	if k.Complete && !failing {
		return Finding{}, false
	}
	f := Finding{Severity: Bad, Text: fmt.Sprintf("%s is %s since %s", k.Kind, k.State, clock(k.Since)), Action: adviceFor(k.Kind, index.State(k.State))}
	if k.Since.IsZero() {
		f.Text = k.Kind + " is " + k.State
	}
	if k.Error != "" {
		f.Text += ": " + k.Error
	}
	f.Text = strings.TrimSuffix(f.Text, ".") + "."
	switch {
	case k.Complete:
		f.Severity = Warn
		f.Text += " What was seen before is still served; changes of this kind are not seen."
	case waiting > 0:
		f.Text += fmt.Sprintf(" %s for it.", verb(waiting, "thing waits", "things wait"))
	default:
		f.Text += " Nothing waits for it at the moment."
	}
	if !failing {
		f.Severity = Neutral
	}
	return f, true
}

// waitingFor counts what is withheld for want of a kind.
func (st *Status) waitingFor(kind string) int {
	n := 0
	for _, w := range st.Withheld {
		if slices.ContainsFunc(w.Missing, func(l index.Lack) bool { return string(l.Kind) == kind }) {
			n += w.Count
		}
	}
	return n
}

// streamFindings: an Envoy that does not answer, or does not take what it is sent.
func (s *Server) streamFindings(x *delta.StreamStatus) []Finding {
	var out []Finding
	name := nodeName(x.Node, x.Peer)
	if since, behind := unanswered(x); !since.IsZero() && s.now().Sub(since) >= slowAnswer {
		text := fmt.Sprintf("%s has not answered for %s (since %s).", name, age(s.now().Sub(since)), clock(since))
		if behind > 0 {
			text += fmt.Sprintf(" %s behind that answer.", verb(behind, "change waits", "changes wait"))
		}
		out = append(out, Finding{
			Severity: Bad, Text: text,
			Action: "Is the Envoy alive? Look at its own admin page and its log. It goes on serving what it has.",
		})
	}
	for _, t := range x.Types {
		for _, q := range t.Quarantined {
			out = append(out, Finding{
				Severity: Bad, Text: fmt.Sprintf("%s rejects %s%s: %s", name, q.Resource, madeFrom(q.Sources), q.Message),
				Action: "Change the object; until then the Envoy keeps what it had, and everything else is served.", About: aboutResource(q.Resource),
			})
		}
	}
	return out[:min(len(out), maxNames)]
}

// unanswered gives since when an Envoy owes an answer, and what waits behind it.
func unanswered(x *delta.StreamStatus) (since time.Time, behind int) {
	for _, t := range x.Types {
		behind += t.Pending
		if t.InFlight > 0 && (since.IsZero() || t.InFlightSince.Before(since)) {
			since = t.InFlightSince
		}
	}
	return since, behind
}

// missedFor is how long an Envoy is missed that fell silent.
const missedFor = 15 * time.Minute

// departedFinding: an Envoy fell silent, and its connection was closed for that. One
// that said farewell, by closing it, is no news.
func (s *Server) departedFinding(d delta.Departed) (Finding, bool) {
	silence := d.Ended.Sub(d.Unanswered)
	if d.Unanswered.IsZero() || silence < slowAnswer || s.now().Sub(d.Ended) > missedFor {
		return Finding{}, false
	}
	return Finding{
		Severity: Bad,
		Text:     fmt.Sprintf("%s is gone since %s: it had not answered for %s, and its connection was lost.", nodeName(d.Node, d.Peer), clock(d.Ended), age(silence)),
		Action:   "Is the Envoy alive? Look at its own admin page and its log. It goes on serving what it has, and connects again by itself when it can.",
	}, true
}

// guardFinding: much would go at once, and a person should say whether it is meant.
func guardFinding(w *Withheld) Finding {
	return Finding{
		Severity: Bad, About: w.Example,
		Text:   fmt.Sprintf("The removal guard holds back %s of %ss from %s since %s: so much at once may be a mistake.", plural(w.Count, "removal"), shortType(w.Type), plural(w.Envoys, "Envoy"), clock(w.Since)),
		Action: "Meant: holdfast release. A mistake: bring the objects back (a deleted CRD takes all its objects along). Else they go when --removal-guard-hold has passed.",
	}
}

// lagFinding: an Envoy holds something newer than what was seen here.
func lagFinding(st *Status) (Finding, bool) {
	for _, w := range st.Withheld {
		for _, l := range w.Missing {
			if l.Held > 0 && st.complete(string(l.Kind)) {
				return Finding{
					Severity: Warn,
					Text:     fmt.Sprintf("%s of %s is behind what an Envoy holds (it needs %s): this replica lags, or the API server was restored from a backup.", "The view", l.Kind, l.Held),
					Action:   "It is told apart by itself, within seconds; the log says which it is.",
				}, true
			}
		}
	}
	return Finding{}, false
}

func (st *Status) complete(kind string) bool {
	return slices.ContainsFunc(st.Kinds, func(k Kind) bool { return k.Kind == kind && k.Complete })
}

// kindSentence says how it stands with a kind that is not complete.
func kindSentence(row *index.KindRow) string {
	if row == nil {
		return "its kind is not watched"
	}
	out := fmt.Sprintf("%s is not complete (%s", row.Kind, row.State)
	if row.LastError != "" {
		out += ": " + row.LastError
	}
	return out + ")"
}

func kindAdvice(row *index.KindRow) string {
	if row == nil {
		return ""
	}
	return adviceFor(string(row.Kind), row.State)
}

// adviceFor says what to do about a kind in a state.
func adviceFor(kind string, state index.State) string {
	switch state {
	case index.Forbidden:
		what := kind
		if w := kinds.Find(index.Kind(kind)); w != nil {
			what = w.Resource
			if w.GVK.Group != "" {
				what += "." + w.GVK.Group
			}
		}
		return "Give holdfast's service account the verbs list and watch on " + what + "; it is noticed by itself."
	case index.Failing:
		return "See whether the API server answers; it is tried again by itself."
	case index.Absent:
		return "Install the CRD, if the kind is wanted; it is noticed by itself."
	default:
		return ""
	}
}

func verb(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func plural(n int, noun string) string { return verb(n, noun, noun+"s") }

func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// age gives a duration as people say it: one or two units.
func age(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
