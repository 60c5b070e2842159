package index

import (
	"time"

	"go.opentelemetry.io/otel/trace"
)

// ObjectKey names a Kubernetes object.
type ObjectKey struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace,omitempty"` // empty: cluster-scoped
	Name      string `json:"name"`
}

// String gives "Kind ns/name", or "Kind name" for a cluster-scoped object.
func (k ObjectKey) String() string {
	if k.Namespace == "" {
		return string(k.Kind) + " " + k.Name
	}
	return string(k.Kind) + " " + k.Namespace + "/" + k.Name
}

// Object is one Kubernetes object. Everything but Lookups and Note comes from
// the source; those two are filled by Rules.Prepare when the object is applied.
type Object struct {
	ObjectKey
	Version ResourceVersion
	// Body is the trimmed typed object. It is immutable.
	Body any
	// Lookups are the keys under which Range finds the object, for example
	// "fqdn=a.example".
	Lookups []string
	// Note is what Rules worked out once about the body, for example a parsed
	// certificate.
	Note any
}

// Change is one thing that a source tells the index: Upsert, Delete, Replace,
// Bookmark, KindStatus or SourceID.
type Change interface{ change() }

// Upsert adds or replaces one object.
type Upsert struct {
	Object *Object
	// InOrder marks a watch event that follows a completed list; it advances the
	// frontier to the object's version.
	InOrder bool
}

// Delete removes one object: a watch event that follows a completed list.
type Delete struct {
	Key     ObjectKey
	Version ResourceVersion
}

// Replace is a completed list: the kind holds exactly these objects at Version.
// Objects and frontier change in the same transaction.
type Replace struct {
	Kind    Kind
	Objects []*Object
	Version ResourceVersion
}

// Bookmark advances the kind's frontier: every event up to Version was applied.
type Bookmark struct {
	Kind    Kind
	Version ResourceVersion
}

// KindStatus sets a kind's state and last error. It never touches the frontier.
type KindStatus struct {
	Kind  Kind
	State State
	Error string
	At    time.Time
}

// SourceID names where the objects come from, for version tokens. A source that
// finds that its past was rolled back gives a new id, which makes every token
// that was issued before foreign.
type SourceID struct{ ID string }

// Witness says that a client still holds some version of a resource that the
// index does not have. A derivation that could make nothing of a broken object
// asks for it (Reader.Witnessed): what is in service stays in service, even
// across a restart of the server, for which the broken object is all there is.
type Witness struct{ Resource ResourceKey }

// Problems replaces what the source itself has to say about its input (a file
// that does not parse, say) under the given subject. An empty list clears it.
type Problems struct {
	Subject string
	List    []Problem
}

func (Upsert) change()     {}
func (Delete) change()     {}
func (Replace) change()    {}
func (Bookmark) change()   {}
func (KindStatus) change() {}
func (SourceID) change()   {}
func (Witness) change()    {}
func (Problems) change()   {}

// Severity of a Problem.
type Severity string

// Severities: an error keeps (a part of) the object out of service, a warning
// does not.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Problem is something that a user should know about an object: which object,
// which field, what is wrong.
type Problem struct {
	Object   ObjectKey `json:"object"`
	Severity Severity  `json:"severity"`
	// Field is the path of the field at fault, for example
	// "spec.routes[1].conditions[0].regex".
	Field string `json:"field,omitempty"`
	// Type and Reason are Contour's condition type and reason, where the API
	// defines them ("RouteError", "ServiceUnresolvedReference").
	Type    string `json:"type,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
}

// Cause is the trace context of what brought a commit about.
type Cause = trace.SpanContext
