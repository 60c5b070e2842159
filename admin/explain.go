package admin

import (
	"slices"
	"time"

	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/index"
)

// Explanation is the body of /explain: what a host, an object or a resource comes
// from, what is made of it, and which Envoy has what of it. Fields are added to it,
// never renamed or removed.
type Explanation struct {
	// Subject is what was asked for, in full: "host a.example", "Cluster ns/name/80".
	Subject  string         `json:"subject"`
	Revision index.Revision `json:"revision"`
	// Findings are what a person should know, the worst first.
	Findings []Finding `json:"findings"`
	// Objects are the Kubernetes objects behind it, those that were looked for and
	// are not there among them.
	Objects []ObjectView `json:"objects"`
	// Derivations read the objects and make the resources.
	Derivations []index.Derived `json:"derivations"`
	Resources   []ResourceView  `json:"resources"`
	Problems    []index.Problem `json:"problems"`
	// Changes are the last ones of these resources, newest first.
	Changes []Change `json:"changes"`
	// Left out, since there are too many.
	OmittedObjects     int `json:"omittedObjects,omitempty"`
	OmittedDerivations int `json:"omittedDerivations,omitempty"`
	OmittedResources   int `json:"omittedResources,omitempty"`
}

// Finding is one thing that a person should know.
type Finding struct {
	Severity Level  `json:"severity"`
	Text     string `json:"text"`
	// Action says what to do about it.
	Action string `json:"action,omitempty"`
	// About is what to explain for more, if anything.
	About string `json:"about,omitempty"`
}

// Level of a finding.
type Level string

// The levels, the worst first.
const (
	Bad     Level = "error"
	Warn    Level = "warning"
	Neutral Level = "info"
	Good    Level = "ok"
)

func (l Level) rank() int { return slices.Index([]Level{Bad, Warn, Neutral, Good}, l) }

// ObjectView is a Kubernetes object, or the place of one that is not there.
type ObjectView struct {
	index.ObjectKey
	// State is "found"; "missing" when its kind is complete; "unknown" when it is
	// not: the object may well exist.
	State   string `json:"state"`
	Version string `json:"resourceVersion,omitempty"`
}

// The states of an ObjectView.
const (
	objectFound   = "found"
	objectMissing = "missing"
	objectUnknown = "unknown"
)

// ResourceView is an xDS resource with all that is known of it but its body.
type ResourceView struct {
	index.ResourceKey
	// State is "live", "removed" (a tombstone) or "none": never made, or long gone.
	State string `json:"state"`
	// Version is the token that is sent for it.
	Version  string             `json:"version,omitempty"`
	Modified index.Revision     `json:"modified,omitempty"` // removed: when it was
	Maker    index.DerivationID `json:"maker,omitempty"`
	Sources  []index.ObjectKey  `json:"sources,omitempty"`
	// Basis says what it owes to each kind.
	Basis []BasisView `json:"basis,omitempty"`
	// Refs are the first of those that it refers to; a listener may refer to thousands.
	Refs        []index.ResourceKey `json:"refs,omitempty"`
	OmittedRefs int                 `json:"omittedRefs,omitempty"`
	ClosedWorld bool                `json:"closedWorld,omitempty"`
	Envoys      []HolderView        `json:"envoys"`
}

// The states of a ResourceView.
const (
	resourceLive    = "live"
	resourceRemoved = "removed"
	resourceNone    = "none"
)

// BasisView is what a resource owes to one kind.
type BasisView struct {
	Kind index.Kind `json:"kind"`
	// Found: it was made from objects of the kind.
	Found bool `json:"found"`
	// Needs says how it relies on the absence of other objects: missing, strict,
	// monotone, removal.
	Needs []string `json:"needs,omitempty"`
	// Version of the kind that it rests on; empty when none was known.
	Version string `json:"version,omitempty"`
	// Complete: the kind is, at this moment.
	Complete bool `json:"complete"`
}

// HolderView is what one Envoy has of a resource, in a word and in full.
type HolderView struct {
	delta.Holder
	State string `json:"state"`
}

// The states of a HolderView, from good to bad.
const (
	holdsCurrent = "current"   // holds the current version
	holdsNothing = "nothing"   // does not have it, as it should be
	awaitsAnswer = "sent"      // was sent it, has not answered
	silent       = "silent"    // was sent it, and has not answered for long
	awaitsTurn   = "pending"   // it leaves when the Envoy has answered something else
	holdsOlder   = "older"     // has another version
	withheldFrom = "withheld"  // the rule holds it back
	rejectedBy   = "rejected"  // the Envoy does not take it
	tooBusy      = "busy"      // its stream had no time to tell
	notAsked     = "not asked" // it has not asked for it
)

// Change is what one revision changed.
type Change struct {
	Revision index.Revision `json:"revision"`
	At       time.Time      `json:"at"` // when it was noticed here
	// Trace is the id of the change's trace; Kept says that it can still be shown.
	Trace string `json:"trace,omitempty"`
	Kept  bool   `json:"kept,omitempty"`
	// Resources that changed or went; Count is over all of them.
	Resources []index.ResourceKey `json:"resources"`
	Count     int                 `json:"count"`
}
