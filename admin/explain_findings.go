package admin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
)

// conclude says in sentences what the explanation shows.
func (g *gathering) conclude() {
	for _, p := range g.out.Problems {
		g.found(Finding{Severity: levelOf(p.Severity), Text: sentence(p), About: about(p.Object)})
	}
	for _, o := range g.out.Objects {
		if o.State == objectUnknown {
			g.found(Finding{
				Severity: Warn, Text: fmt.Sprintf("%s was not seen. It may well exist: %s.", o.ObjectKey, kindSentence(g.snap.Kind(o.Kind))),
				Action: kindAdvice(g.snap.Kind(o.Kind)),
			})
		}
	}
	for i := range g.out.Resources {
		g.judge(&g.out.Resources[i])
	}
	if g.everybody() {
		g.found(Finding{Severity: Good, Text: fmt.Sprintf("Every connected Envoy that asks for them has the current version of all %d resources.", len(g.out.Resources))})
	}
	slices.SortStableFunc(g.out.Findings, func(a, b Finding) int { return a.Severity.rank() - b.Severity.rank() })
}

func (g *gathering) found(f Finding) { g.out.Findings = append(g.out.Findings, f) }

// everybody: there is something to have, and all who should have it do.
func (g *gathering) everybody() bool {
	holders := 0
	for _, r := range g.out.Resources {
		for _, e := range r.Envoys {
			switch e.State {
			case holdsCurrent:
				holders++
			case notAsked, holdsNothing:
			default:
				return false
			}
		}
	}
	return holders > 0 && g.out.OmittedResources == 0
}

// judge says what is wrong with a resource, once for all Envoys of which the same
// can be said.
func (g *gathering) judge(r *ResourceView) {
	groups := map[string][]string{}
	var order []string
	for i := range r.Envoys {
		text := g.complaint(r, &r.Envoys[i])
		if text == "" {
			continue
		}
		if groups[text] == nil {
			order = append(order, text)
		}
		groups[text] = append(groups[text], envoyName(&r.Envoys[i]))
	}
	for _, text := range order {
		level, sentence, _ := strings.Cut(text, "\n")
		g.found(Finding{
			Severity: Level(level), About: aboutResource(r.ResourceKey),
			Text: fmt.Sprintf("%s: %s", someNames(groups[text]), sentence),
		})
	}
}

// complaint gives a level and a sentence, parted by a newline; "" when all is well.
func (g *gathering) complaint(r *ResourceView, e *HolderView) string {
	switch e.State {
	case rejectedBy:
		return string(Bad) + "\nrejects " + r.String() + madeFrom(r.Sources) + ": " + e.Quarantined.Message
	case withheldFrom:
		return string(Warn) + "\n" + withheldSentence(r.String(), e.Withheld.Action, e.Withheld.Reason, e.Withheld.Since) + g.lacks(e.Withheld.Missing)
	case silent:
		return string(Warn) + "\nhas not answered since " + clock(e.Sent) + ", when " + r.String() + " was sent"
	case awaitsTurn:
		return string(Neutral) + "\n" + r.String() + " leaves when the response in flight is answered"
	case holdsOlder:
		return string(Warn) + "\nhas another version of " + r.String()
	}
	return ""
}

func withheldSentence(resource, action, reason string, since time.Time) string {
	what := resource + " is withheld"
	if action == "remove" {
		what = "the removal of " + resource + " is withheld"
	}
	return what + " since " + clock(since) + ": " + reason
}

// lacks says which kinds are missing, and why each is.
func (g *gathering) lacks(missing []index.Lack) string {
	var out []string
	for _, l := range missing {
		out = append(out, lackSentence(g.snap, l))
	}
	if out == nil {
		return ""
	}
	return "; " + strings.Join(out, "; ")
}

func lackSentence(snap *index.Snapshot, l index.Lack) string {
	row := snap.Kind(l.Kind)
	if row != nil && row.Frontier.Observed && l.Held > 0 {
		return fmt.Sprintf("%s was seen up to %s, the Envoy holds what was made at %s", l.Kind, row.Frontier, l.Held)
	}
	return kindSentence(row)
}

func madeFrom(sources []index.ObjectKey) string {
	if len(sources) == 0 {
		return ""
	}
	return ", made from " + objectNames(sources)
}

func objectNames(keys []index.ObjectKey) string {
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		names = append(names, k.String())
	}
	return someNames(names)
}

// someNames gives the first few names, and how many more there are.
func someNames(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func envoyName(h *HolderView) string { return nodeName(h.Node, h.Peer) }

func nodeName(node, peer string) string {
	if node == "" {
		return "the Envoy at " + peer
	}
	return node
}

func levelOf(s index.Severity) Level {
	if s == index.Error {
		return Bad
	}
	return Warn
}

func sentence(p index.Problem) string {
	out := p.Object.String() + ": "
	if p.Field != "" {
		out += p.Field + ": "
	}
	return out + p.Message
}

// about and aboutResource give what to ask explain for.
func about(k index.ObjectKey) string {
	if k.Namespace == "" {
		return string(k.Kind) + "/" + k.Name
	}
	return string(k.Kind) + "/" + k.Namespace + "/" + k.Name
}

func aboutResource(k index.ResourceKey) string {
	if word := typeWords[k.Type]; word != "" {
		return word + "/" + k.Name
	}
	return k.Type + "/" + k.Name
}
