package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Scope is the instrumentation scope of all our spans and metrics.
const Scope = "github.com/holdfast-xds/holdfast"

// Names of spans. They say what happened, never to whom: that is in attributes,
// so that spans can be grouped by name.
const (
	// SpanStart is the start-up, until each kind was listed or failed for the
	// first time; the root of the initial lists' trace.
	SpanStart = "holdfast.start"
	// SpanConnect is an Envoy's first request on a stream, the root of the trace
	// of all that it is sent because it asks for it.
	SpanConnect = "holdfast.connect"
	// SpanWatchEvent is one watch event, or one batch of them: the root of a
	// change's trace. The folder source's is one change of the folder.
	SpanWatchEvent = "holdfast.watch_event"
	// SpanList is one list of a kind, all pages: a child of the start-up, or the
	// root of a trace when the kind is listed anew.
	SpanList = "holdfast.list"
	// SpanCommit is one index transaction, with the derivations it ran.
	SpanCommit = "holdfast.commit"
	// SpanDerive is the run of one derivation inside a commit; the last of them, of
	// many, stands for all that follow.
	SpanDerive = "holdfast.derive"
	// SpanWithhold is the moment at which a stream decided that what a change led
	// to must wait; its events say what, and for which kinds.
	SpanWithhold = "holdfast.withhold"
	// SpanResponse is one response to one client: from being sent until its
	// ACK or NACK.
	SpanResponse = "holdfast.response"
	// SpanAck and SpanNack are the client's answer to a response.
	SpanAck  = "holdfast.ack"
	SpanNack = "holdfast.nack"
)

// Names of span events.
const (
	// EventWithheld: the rule does not let a resource or a removal go yet.
	EventWithheld = "holdfast.withheld"
	// EventReleased: something that was withheld went out; its span links to the
	// one that withheld it.
	EventReleased = "holdfast.released"
	// EventQuarantined: a client rejected a resource; it is not sent again until
	// its source changes.
	EventQuarantined = "holdfast.quarantined"
	// EventObserved: a kind became complete.
	EventObserved = "holdfast.observed"
	// EventOutcome: a kind was listed, or failed, for the first time.
	EventOutcome = "holdfast.outcome"
	// EventRelist: a watch could not go on and the kind is listed anew.
	EventRelist = "holdfast.relist"
)

// Attributes for which OpenTelemetry's semantic conventions have a name.
const (
	AttrNamespace   = semconv.K8SNamespaceNameKey
	AttrPeerAddress = semconv.NetworkPeerAddressKey
	AttrErrorType   = semconv.ErrorTypeKey
)

// Attributes of a Kubernetes object or kind.
const (
	AttrKind            attribute.Key = "holdfast.kind"
	AttrObjectName      attribute.Key = "holdfast.object.name"
	AttrResourceVersion attribute.Key = "holdfast.object.resource_version"
	// AttrEventType is ADDED, MODIFIED, DELETED or BOOKMARK.
	AttrEventType attribute.Key = "holdfast.event.type"
	// AttrEvents is the number of watch events in a batch.
	AttrEvents attribute.Key = "holdfast.events"
	// AttrObjects is the number of objects in a list.
	AttrObjects attribute.Key = "holdfast.objects"
	AttrPages   attribute.Key = "holdfast.pages"
	AttrState   attribute.Key = "holdfast.kind.state"
	// AttrFrontier is a resourceVersion, or ⊥.
	AttrFrontier attribute.Key = "holdfast.kind.frontier"
	// AttrMissing lists the kinds that keep something withheld.
	AttrMissing attribute.Key = "holdfast.kinds.missing"
)

// Attributes of a commit.
const (
	AttrRevision attribute.Key = "holdfast.revision"
	// AttrChanges is the number of changes given to the index, AttrDerivations
	// the number of derivations that ran, AttrResources the number of resources
	// changed or sent.
	AttrChanges     attribute.Key = "holdfast.changes"
	AttrDerivations attribute.Key = "holdfast.derivations"
	AttrResources   attribute.Key = "holdfast.resources"
	AttrProblems    attribute.Key = "holdfast.problems"
	// AttrDerivation is a derivation's id, AttrHost the host that it is about:
	// what to search a change by.
	AttrDerivation attribute.Key = "holdfast.derivation"
	AttrHost       attribute.Key = "holdfast.host"
)

// Attributes of a stream, a response and a resource.
const (
	AttrStream attribute.Key = "holdfast.stream.id"
	// AttrNode is the client's node id.
	AttrNode    attribute.Key = "holdfast.node.id"
	AttrTypeURL attribute.Key = "holdfast.type_url"
	AttrNonce   attribute.Key = "holdfast.nonce"
	AttrRemoved attribute.Key = "holdfast.resources.removed"
	AttrBytes   attribute.Key = "holdfast.response.bytes"
	// AttrResource is a resource's name, AttrResourceNames the first few names
	// of a response.
	AttrResource      attribute.Key = "holdfast.resource.name"
	AttrResourceNames attribute.Key = "holdfast.resource.names"
	// AttrAction is "send" or "remove", AttrReason a sentence for a person.
	AttrAction attribute.Key = "holdfast.action"
	AttrReason attribute.Key = "holdfast.reason"
	// AttrHeld is how many resources of the first type asked for a connecting
	// client says it holds.
	AttrHeld attribute.Key = "holdfast.resources.held"
	// AttrWithheld is how many resources were withheld, or released, together.
	AttrWithheld attribute.Key = "holdfast.withheld.count"
	// AttrErrorDetail is a NACK's error_detail, in the client's words.
	AttrErrorDetail attribute.Key = "holdfast.nack.error_detail"
)
