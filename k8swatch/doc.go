// Package k8swatch brings Kubernetes objects into the index, from an API server
// or from a folder of YAML files, together with the proof of what is not there.
//
//	API server ─list/watch─▶ Reflector per kind ─┐
//	                │ pages, ADDED events         ├─▶ Sink.Apply (the index)
//	                └───────── eager ─────────────┤
//	folder ──read/notify──▶ one loop ─────────────┘
//
// Both sources obey one contract. What is seen before a list has ended goes to
// the index at once, as an Upsert that moves no frontier. A list that has ended
// is one Replace: its objects and its version in a single transaction, which is
// the proof that nothing else exists. What follows is in order.
//
// For a folder, one full read is the list. A file that does not parse could
// hold anything, so until it is mended no kind is complete; everything else
// flows. Once a kind was observed it stays so: whatever goes wrong later ages
// it, and the last good objects stay.
//
// Duties of the caller:
//
//  1. Run is called once; it ends when its context does, and then everything
//     that it started has ended as well.
//  2. The Sink is safe for concurrent use. (A source applies what it sees from one
//     goroutine, in order; Kube.Rollback applies from its caller's.)
//
// Guarantees: a first list is a consistent read (never resourceVersion "0"); a
// kind that fails is tried again for ever and delays no other; objects are
// trimmed to what translation needs and immutable once handed over; no failure
// is taken for absence, save a kind that a successful discovery does not list.
//
// The package never reads the index and decides nothing about Envoy. Its tests
// are beside it: a real folder, and an API server of a few hundred lines.
package k8swatch
