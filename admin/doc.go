// Package admin is what a person, a probe and a scraper may see of a running
// holdfast, over HTTP:
//
//	/          a page with kinds, Envoys, what is withheld, problems, recent traces
//	/healthz   200 while the process answers
//	/readyz    200 while Envoys can connect; names each kind that is not complete
//	/status    the same as JSON (type Status)
//	/traces    the last traces as JSON
//	/metrics   Prometheus metrics
//	/debug/pprof/
//
// It only reads: a snapshot of the index, and the state of each stream. Bodies
// of resources never appear, so neither does a private key.
//
// Ready does not mean complete. A kind that is forbidden, or whose list takes
// for ever, must not take a replica out of its Service: what is known is served,
// and the rule holds back what is not. Who wants to wait until everything is
// known asks for /readyz?complete.
package admin
