package indextest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/index"
)

// Kinds in the order of Rules.
var Kinds = []index.Kind{Host, Path, Svc, Slice, Cert}

// History makes changes by chance and keeps what there is. The zero value with Pick
// begins with nothing.
type History struct {
	// Pick chooses a number below n.
	Pick    func(n int) int
	Version int
	// Objects by key: their lines without the kind.
	Objects  map[index.ObjectKey]string
	Observed map[index.Kind]bool
}

// NewHistory begins with nothing.
func NewHistory(pick func(n int) int) *History {
	return &History{Pick: pick, Objects: map[index.ObjectKey]string{}, Observed: map[index.Kind]bool{}}
}

// Step gives the next change.
func (h *History) Step() string {
	k := Kinds[h.Pick(len(Kinds))]
	switch h.Pick(12) {
	case 0, 1:
		return h.List(k)
	case 2, 3, 4:
		return h.remove(k)
	case 5:
		return fmt.Sprintf("bookmark %s @%d", k, h.Version)
	}
	h.Version++
	line := fmt.Sprintf("%s @%d", h.object(k), h.Version)
	key := index.ObjectKey{Kind: k, Name: strings.Fields(line)[0]}
	_, known := h.Objects[key]
	h.Objects[key] = line
	// An early change of a known object waits for its list, which is another step.
	if !h.Observed[k] || !known && h.Pick(4) == 0 {
		return "eager " + string(k) + " " + line
	}
	return string(k) + " " + line
}

// List gives a complete list of a kind. Some objects are gone: nobody watched.
func (h *History) List(k index.Kind) string {
	for _, key := range h.keys(k) {
		if h.Pick(5) == 0 {
			delete(h.Objects, key)
		}
	}
	return h.Relist(k)
}

// Relist gives a complete list of what there is.
func (h *History) Relist(k index.Kind) string {
	h.Version++
	h.Observed[k] = true
	line := fmt.Sprintf("list %s @%d", k, h.Version)
	for _, key := range h.keys(k) {
		line += "; " + h.Objects[key]
	}
	return line
}

// AtOnce gives all that there is, as few changes.
func (h *History) AtOnce() string {
	var out []string
	for _, k := range Kinds {
		if h.Observed[k] {
			out = append(out, h.Relist(k))
			continue
		}
		for _, key := range h.keys(k) {
			out = append(out, "eager "+string(k)+" "+h.Objects[key])
		}
	}
	return strings.Join(out, "\n")
}

func (h *History) remove(k index.Kind) string {
	h.Version++
	keys := h.keys(k)
	if len(keys) == 0 {
		return fmt.Sprintf("bookmark %s @%d", k, h.Version)
	}
	key := keys[h.Pick(len(keys))]
	delete(h.Objects, key)
	return fmt.Sprintf("delete %s %s @%d", k, key.Name, h.Version)
}

func (h *History) keys(k index.Kind) []index.ObjectKey {
	var out []index.ObjectKey
	for key := range h.Objects {
		if key.Kind == k {
			out = append(out, key)
		}
	}
	slices.SortFunc(out, func(a, b index.ObjectKey) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (h *History) object(k index.Kind) string {
	n := h.Pick
	switch k {
	case Host:
		line := fmt.Sprintf("h%d fqdn=f%d svc=s%d,s%d age=%d", n(4), n(3), n(3), n(3), n(4))
		if n(2) == 0 {
			line += fmt.Sprintf(" cert=c%d", n(2))
		}
		if n(8) == 0 {
			line += " invalid=yes"
		}
		return line
	case Path:
		return fmt.Sprintf("p%d fqdn=f%d svc=s%d", n(3), n(3), n(3))
	case Svc:
		return fmt.Sprintf("s%d port=%d", n(3), n(3))
	case Slice:
		return fmt.Sprintf("e%d of=s%d addr=%d", n(4), n(3), n(5))
	default:
		return fmt.Sprintf("c%d pem=%d", n(2), n(3))
	}
}
