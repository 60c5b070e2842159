package admin

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/tracing"
)

// pageFuncs are the words of the templates.
var pageFuncs = template.FuncMap{
	"short": shortType, "clock": clock, "count": count, "about": about, "aboutName": aboutName, "aboutResource": aboutResource,
	"explainLink": explainLink, "severityChip": severityChip, "objectChip": objectChip, "resourceChip": resourceChip,
	"tally": tally, "digest": digestOf, "basis": basisWords,
	"big":   func(n uint64) string { return count(int(n)) },
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"took":  func(d tracing.Duration) string { return took(time.Duration(d)) },
}

// chip is a word with a colour and a sign.
type chip struct {
	Level Level
	Text  string
}

func severityChip(s index.Severity) chip { return chip{levelOf(s), string(s)} }

func objectChip(o ObjectView) chip {
	switch o.State {
	case objectFound:
		return chip{Good, "found"}
	case objectMissing:
		return chip{Bad, "missing"}
	}
	return chip{Warn, "not seen"}
}

func resourceChip(r ResourceView) chip {
	switch r.State {
	case resourceLive:
		return chip{Good, "live"}
	case resourceRemoved:
		return chip{Neutral, "removed"}
	}
	return chip{Warn, "not made"}
}

var holderLevels = map[string]Level{
	holdsCurrent: Good, holdsNothing: Neutral, notAsked: Neutral, tooBusy: Neutral, awaitsAnswer: Neutral, awaitsTurn: Neutral,
	silent: Warn, holdsOlder: Warn, withheldFrom: Warn, rejectedBy: Bad,
}

// tally counts the Envoys by what they have.
func tally(holders []HolderView) []chip {
	counts := map[string]int{}
	var order []string
	for _, h := range holders {
		if counts[h.State]++; counts[h.State] == 1 {
			order = append(order, h.State)
		}
	}
	out := make([]chip, 0, len(order))
	for _, state := range order {
		out = append(out, chip{holderLevels[state], fmt.Sprintf("%d %s", counts[state], state)})
	}
	return out
}

// basisWords says how a resource rests on a kind: "found, up to 12; needs strict".
func basisWords(b BasisView) string {
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
		out += ", not complete"
	}
	return out
}

// count gives a number with its thousands apart.
func count(n int) string {
	s := strconv.Itoa(n)
	if n < 0 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// took gives a duration with three digits at most.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return age(d)
}

// digestOf gives the part of a version token that stands for the body.
func digestOf(version string) string {
	form, rest, _ := strings.Cut(version, ".")
	digest, _, _ := strings.Cut(rest, ".")
	return form + "." + digest
}
