// Package delta decides what a client of the incremental xDS protocol is sent,
// and when. It is pure: a Stream takes requests, index snapshots and the time
// as arguments and returns responses; package delta/ads is the gRPC shell.
//
// The heart is Decide, the rule: presence may be sent eagerly, absence needs a
// proof, which only an index.Snapshot makes and without which no response can
// say "removed".
//
//	Request ─▶ ┌────────────────────────────┐
//	Advance ─▶ │ Stream                     │ ─▶ []*Response
//	Tick ────▶ │  subscription per type:    │
//	           │   held = current + others  │
//	           │   pending, withheld        │
//	           │   one response in flight   │
//	           └────────────────────────────┘
//
// States, inputs and outputs of the machine are in stream.go; the rule is in
// rule.go; make before break is in order.go and removal.go; ACKs and NACKs are in
// ack.go; what the withheld wait for is in waiting.go.
//
// Duties of the caller:
//
//  1. One goroutine owns a Stream.
//  2. The responses that a call returns are sent in their order.
//  3. The stream is a reader of the index (Index.Pass with Stream.Revision after
//     each call), so that tombstones and ordinals stay valid for it; Pass with
//     revision 0 comes before the first snapshot is taken.
//  4. Tick is called at Stream.Deadline.
//
// A client may ask by a name that another resource answers for (index.Aliasing); see
// alias.go.
//
// What the client holds moves only with an ACK. Per client the machine keeps a
// bit for each resource of which the client holds the current version, and an
// entry only for the others, so a client that has everything costs little.
package delta
