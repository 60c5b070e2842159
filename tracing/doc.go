// Package tracing names holdfast's spans and sets up where they go.
//
// One change is one trace, from the moment that Kubernetes told us of it until
// each Envoy has answered:
//
//	watch event ──▶ commit ──▶ derive                      one per derivation
//	(or list)          ├─────▶ response ──▶ ack | nack     one per stream and type
//	                   └─────▶ withhold                    what has to wait, and why
//
// A response that carries several changes is a child of the newest and links to
// the others. What the rule holds back is an event, "withheld", that names the
// missing kinds; the response with which it leaves after all has an event
// "released" and links to it. The start-up is a trace of its own, with a span for
// each kind's list; so is an Envoy's connection.
//
// Spans are exported by OTLP when the standard OTEL_* variables ask for it.
// Either way a Ring keeps the last traces for the status page.
//
// Duties of the caller: environment variables are read by the caller and given
// as Options, save those that the OpenTelemetry SDK reads by itself (endpoints,
// headers, batches, resource attributes); the shutdown function that Setup gives is
// called once, or the last spans are lost; a list of attributes that is given to a
// span is not used again. The instruments of all packages' metrics are named here
// and meet in one Metrics.
package tracing
