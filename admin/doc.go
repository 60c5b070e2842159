// Package admin is what a person, a probe and a scraper may see of a running
// holdfast, over HTTP:
//
//	/           the page: what needs a person, kinds, Envoys, what is withheld, changes
//	/view/…     its further pages: hosts, explain, a trace as a waterfall, …
//	/healthz    200 while the process answers
//	/readyz     200 while Envoys can connect; names each kind that is not complete
//	/status     all of the first page as JSON (type Status)
//	/explain    one host, object or resource as JSON (type Explanation)
//	/holdings   what one Envoy holds, as JSON (type Holdings)
//	/traces     the last traces as JSON
//	/metrics    Prometheus metrics
//	/release    POST: lets go what the removal guard withholds
//	/debug/pprof/
//
//	snapshot ─┐
//	streams  ─┼─▶ Status, Explanation ─▶ JSON, page, commands
//	changes  ─┘
//
// It only reads, apart from /release: a snapshot of the index, the state of each
// stream, the last traces. It never waits for a stream that is busy. Bodies of
// resources never appear (of endpoints the addresses do), so neither does a private
// key. guard.go says who may ask; attention.go what is worth a person's first look.
//
// Duties of the caller: Options.Holders and the like must not block for long, and
// must have cut private keys out of what clients say.
//
// Ready does not mean complete. A kind that is forbidden, or whose list takes
// for ever, must not take a replica out of its Service: what is known is served,
// and the rule holds back what is not. Who wants to wait until everything is
// known asks for /readyz?complete.
//
// Its tests beside those here are cmd/holdfast (keys), e2e (a forbidden kind) and
// e2e/page (a real browser).
package admin
