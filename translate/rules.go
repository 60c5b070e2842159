package translate

import (
	"fmt"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// Rules implements index.Rules. It is immutable and safe for concurrent use.
type Rules struct {
	opts Options
	// Made once from opts.
	http, https listenerParts
}

var _ index.Rules = (*Rules)(nil)

// New makes the rules. The options must be valid: see Options.Validate.
func New(o Options) *Rules {
	if err := o.Validate(); err != nil {
		panic("translate: " + err.Error())
	}
	x := &Rules{opts: o.withDefaults()}
	x.http = plainListener(x.opts.HTTPAddress)
	x.https = secureListener(&x.opts)
	return x
}

// Kinds lists every kind that holdfast watches.
func (x *Rules) Kinds() []index.KindSpec {
	out := make([]index.KindSpec, 0, len(kinds.All))
	for i := range kinds.All {
		out = append(out, kinds.All[i].KindSpec)
	}
	return out
}

// hostKinds decide which hosts there are, and so what is demanded at all.
var hostKinds = []index.Kind{kinds.HTTPProxy, kinds.Ingress, kinds.Secret, kinds.TLSCertificateDelegation}

// allKinds feed what a fresh Envoy serves.
var allKinds = append([]index.Kind{kinds.Service, kinds.EndpointSlice}, hostKinds...)

// Types lists the resource types, and for each the kinds that can feed it.
func (x *Rules) Types() []index.TypeSpec {
	routed := append([]index.Kind{kinds.Service}, hostKinds...)
	secrets := index.TypeSpec{URL: typeSecret, Feeds: hostKinds}
	if x.onDemand() {
		secrets.Aliasing = &index.Aliasing{Candidates: certificateNames, Rename: renameSecret}
	}
	return []index.TypeSpec{
		{URL: typeCluster, Feeds: routed},
		{URL: typeEndpoints, Feeds: allKinds},
		{URL: typeListener, Feeds: hostKinds},
		secrets,
		{URL: typeScope, Feeds: routed},
		{URL: typeRoutes, Feeds: routed},
	}
}

// Roots lists the derivations that always exist.
func (x *Rules) Roots() []index.DerivationID {
	out := []index.DerivationID{rootFallback, rootHTTPListener, rootHTTPSListener}
	if x.onDemand() {
		out = append(out, prefetchRoots()...)
	}
	return out
}

// Rank orders the derivations: facts flow upwards.
func (x *Rules) Rank(id index.DerivationID) int {
	switch form, _ := split(id); form {
	case formSecret:
		return 0
	case formCover:
		return 1
	case formTLS, formHost, formChild:
		return 2
	case formCluster:
		return 3
	case formEndpoints:
		return 4
	default:
		return 5
	}
}

// Derive makes what one subject is made of.
func (x *Rules) Derive(id index.DerivationID, param any, r *index.Reader) {
	switch id {
	case rootFallback:
		x.fallback(r)
		return
	case rootHTTPListener:
		x.httpListener(r)
		return
	case rootHTTPSListener:
		x.httpsListener(r)
		return
	}
	switch form, subject := split(id); form {
	case formHost:
		x.host(subject, r)
	case formTLS:
		x.tls(subject, r)
	case formCover:
		x.cover(subject, r)
	case formPrefetch:
		x.prefetch(subject, r)
	case formSecret:
		x.secret(subject, r)
	case formCluster:
		x.cluster(subject, param.(upstream), r)
	case formEndpoints:
		x.endpoints(subject, param.(servicePort), r)
	case formChild:
		x.child(subject, r)
	default:
		panic(fmt.Sprintf("translate: unknown derivation %s", id))
	}
}
