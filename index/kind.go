package index

import (
	"strconv"
	"time"
)

// Kind names a Kubernetes group/resource that is watched in one scope.
type Kind string

// ResourceVersion is an object's or a list's version as a number. A source
// without versions (a folder) uses 0 everywhere.
type ResourceVersion uint64

// ParseResourceVersion reads a Kubernetes resourceVersion.
func ParseResourceVersion(s string) (ResourceVersion, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	return ResourceVersion(v), err
}

// String gives the decimal form that Kubernetes uses.
func (v ResourceVersion) String() string { return strconv.FormatUint(uint64(v), 10) }

// KindSpec describes a kind to the index.
type KindSpec struct {
	Kind Kind
	// Code is the kind's short name inside version tokens. Codes are an
	// interface: they are never changed or used again for another kind.
	Code string
	// Required kinds are never taken for absent when discovery does not list
	// them.
	Required bool
}

// State says what is known of a kind's list.
type State string

// The states of a kind. Observed says that the frontier is set; a kind that was
// observed once keeps its frontier when its state turns to Failing or Forbidden:
// it ages, it does not become unknown again.
const (
	Unknown   State = "unknown"   // not yet asked
	Listing   State = "listing"   // the first list is under way
	Observed  State = "observed"  // list complete, watch running
	Absent    State = "absent"    // a successful discovery says that the API server does not serve it
	Forbidden State = "forbidden" // the API server refuses the list or watch
	Failing   State = "failing"   // the list or watch fails for another reason
)

// Frontier is ⊥ (the zero value) or a version R: the index holds the kind as it
// was at R or later.
type Frontier struct {
	Observed bool
	Version  ResourceVersion
}

// Reaches reports frontier ≥ v; false while the kind is unobserved.
func (f Frontier) Reaches(v ResourceVersion) bool { return f.Observed && f.Version >= v }

// String gives "⊥" or the version.
func (f Frontier) String() string {
	if !f.Observed {
		return "⊥"
	}
	return f.Version.String()
}

// KindRow is a kind's state in one snapshot. Rows are immutable.
type KindRow struct {
	KindSpec
	State    State
	Frontier Frontier
	// Events is the frontier as advanced by lists and events, not by bookmarks;
	// it is what a derivation's vector records for a kind that it needs, so that
	// a bookmark changes no version token.
	Events ResourceVersion
	// Listed is the version of the newest complete list. Every derivation's result
	// is valid at Listed or later, whether or not the list made it run again: what
	// came before the list ended (eagerly) is confirmed by it.
	Listed    ResourceVersion
	LastError string
	Since     time.Time // when State last changed, as told by the source
	Objects   int
}

// Complete reports whether the kind's absence can be relied upon: its list was
// observed, or a discovery showed that the kind is not served.
func (k *KindRow) Complete() bool { return k.Frontier.Observed || k.absent() }

func (k *KindRow) absent() bool { return k.State == Absent && !k.Required }
