package tracing

// Names of metrics, in OpenTelemetry's spelling. Prometheus shows dots as
// underscores, a counter with _total, a unit at the end (_seconds, _bytes).
const (
	MetricBuild    = "holdfast.build.info"
	MetricRevision = "holdfast.index.revision"

	MetricKindComplete = "holdfast.kind.complete"
	MetricKindState    = "holdfast.kind.state"
	MetricKindObjects  = "holdfast.kind.objects"
	MetricKindFrontier = "holdfast.kind.frontier"
	// MetricFrontierAge is how long ago the API server last said something of a
	// kind: a list, an event or a bookmark.
	MetricFrontierAge  = "holdfast.kind.frontier.age"
	MetricListDuration = "holdfast.list.duration"

	MetricResources  = "holdfast.resources"
	MetricTombstones = "holdfast.tombstones"
	MetricProblems   = "holdfast.problems"

	MetricEnvoys         = "holdfast.envoys"
	MetricHeld           = "holdfast.held"
	MetricInFlight       = "holdfast.inflight"
	MetricWithheld       = "holdfast.withheld"
	MetricWithheldOldest = "holdfast.withheld.oldest"
	MetricQuarantined    = "holdfast.quarantined"
	// MetricEnvoyLag and MetricEnvoyPending say how far behind an Envoy is: since
	// when it owes an answer, and how many changes wait behind that.
	MetricEnvoyLag     = "holdfast.envoy.lag"
	MetricEnvoyPending = "holdfast.envoy.pending"

	MetricResponses     = "holdfast.responses"
	MetricSentResources = "holdfast.sent.resources"
	MetricSentRemovals  = "holdfast.sent.removals"
	MetricSentBytes     = "holdfast.sent.bytes"
	MetricAcks          = "holdfast.acks"
	MetricNacks         = "holdfast.nacks"
	// MetricAckDuration is the time from a change's arrival to an Envoy's ACK.
	MetricAckDuration = "holdfast.change.ack.duration"
)
