// Package index holds what holdfast has seen of Kubernetes, what it derived from
// that, and, inside the same snapshot, how complete the view is.
//
// Presence may be acted on as soon as it is seen. Absence needs proof, and this
// package is the only place that can make one (Snapshot.ProveAbsent): a Proof
// says that the lists of every kind involved were observed, up to the versions
// that the holder of the resource relies on.
//
//	changes ──▶ Apply ──▶ objects ──changed keys──▶ derivations ──▶ resources
//	             │          kinds (frontier)            │              tombstones
//	             └────────── one write transaction ─────┴──▶ Snapshot (revision r)
//
// Duties of the caller:
//
//  1. Upsert.InOrder and Delete are for watch events that directly follow a
//     completed list of the kind: they advance the frontier. Anything seen
//     before a list has ended is an Upsert without InOrder.
//  2. Replace carries every object of its kind as of its version. A list that
//     was cut short is never a Replace.
//  3. Bodies are immutable once they are handed over.
//
// Guarantees: a snapshot never changes and never mixes two moments; a row is
// never modified in place; a commit's derivations run inside its transaction,
// and only those that read one of the changed keys. The package has no clock,
// starts no goroutine and does no I/O. It knows neither Kubernetes types nor
// xDS messages: Rules tell it how objects are looked up and what they make.
package index
