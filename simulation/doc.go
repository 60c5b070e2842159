// Package simulation shows that holdfast keeps its promise in every interleaving
// that it can think of. It is a world in one goroutine, without real time, whose
// every choice comes from a seed:
//
//	API server ──▶ watch per kind ──▶ index ──▶ stream ──▶ Envoy
//	(model)        (model)            (real)    (real)     (model)
//	  │                                                      │
//	  └──── each event ──▶ truth (real index) ◀── compare ───┘
//
// The index, the translation and the streams are the production code. The API
// server is a store with one version counter, with replicas that lag, kinds that
// are forbidden, fail or are not served. A watch plays package k8swatch's part: it
// lists in pages and shows them early, follows events, is dropped, finds its
// version too old and lists anew. An Envoy behaves as was measured of a real one
// (ENVOY facts in ARCHITECTURE.md): the order of its requests, warming, held back
// acknowledgements, removals that it ignores, rejected responses that are applied
// in part. Messages wait in queues until the scheduler delivers them; replicas and
// Envoys die and start at any step.
//
// A seed makes a world and a list of steps. After each action the checks are:
//
//   - safety: no Envoy loses, or is given a shrunken form of, what the API server
//     has held without a break since the moment of which the Envoy's version is.
//     What counts is what a client could tell: a request that reaches an address, a
//     handshake that gets a certificate (see fact).
//   - start: a fresh Envoy is not ready before it serves all that there is.
//   - references: no route uses a cluster that is not in service.
//   - warming: nothing waits at an Envoy while nothing is under way to it.
//   - withheld: what is withheld names a kind that is truly incomplete or behind.
//   - resent: an Envoy that comes back is not sent what it has.
//   - convergence: when the world has come to rest, every index and every Envoy is
//     what a translation from scratch says, and nothing is withheld.
//
// What is not held against a replica is said where it is let pass: see excused,
// excusable, leftOver and the comments on held.
//
// A failing seed is minimized, by taking steps away, and printed with the command
// that replays it. That the checks can fail is shown by mutants (make mutants): the
// same world with one line of the production code changed.
package simulation
