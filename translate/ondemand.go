package translate

import (
	"iter"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mapperv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_mappers/sni/v3"
	selectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_selectors/on_demand_secret/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// On-demand certificates, for thousands of TLS hosts. One filter chain serves all
// of them and never changes when hosts come and go:
//
//	handshake for Shop.example ── asks for the Secret "Shop.example", an alias of shop.example
//	its requests ── scope https/shop.example, by the server name ── its routes
//
// The Secret of a host has the host's name, since the filter chain asks for the
// server name as the client wrote it. For names that it doesn't hold Envoy has to
// ask while the client waits, so hidden listeners (prefetch.go) make it hold them
// all.
//
// A host with protocol versions of its own has a filter chain of its own, as in the
// other mode, and so has a wildcard host: on demand, each name below it would be one
// more certificate for Envoy to keep for ever, and clients can make up names. The
// listener's matcher (matcher.go) finds these chains, and is told which hosts below a
// wildcard host are not meant by it.
//
// The Secret of such a chain has another name than the on-demand one would have: a
// handshake that asks for a Secret which a filter chain names as well never ends.

// ownSecret begins the names of Secrets that a filter chain of their own uses.
const ownSecret = "chain/"

func (x *Rules) onDemand() bool { return x.opts.TLS == OnDemand }

// heldNames gives the names under which an Envoy may hold the certificate of a host.
func (x *Rules) heldNames(fqdn string, s secretRef) []string {
	if x.onDemand() {
		return []string{fqdn, ownSecret + fqdn}
	}
	return []string{s.String()}
}

// handshakeTimeout bounds how long a handshake waits for holdfast to say whether
// there is a certificate.
const handshakeTimeout = 10 * time.Second

// onDemandName is the filter chain's. No host can have it.
const onDemandName = "on-demand/"

// onDemandChain is the filter chain of all hosts but the special ones. Envoy forgets
// every certificate that was asked for when it changes.
func onDemandChain(v tlsVersions) *listenerv3.FilterChain {
	filters := []*hcmv3.HttpFilter{luaFilter(filterFallback, goneScript), router()}
	return &listenerv3.FilterChain{
		Name:                          onDemandName,
		TransportSocket:               tlsSocket(packed(onDemandContext(v))),
		TransportSocketConnectTimeout: durationpb.New(handshakeTimeout),
		Filters:                       []*listenerv3.Filter{connectionManager(byScope(scopeOfServerName), listenerHTTPS, filters)},
	}
}

// noServerName is the Secret that a handshake without a server name asks for. There
// is none.
const noServerName = "no-server-name/"

// onDemandContext asks for certificates by server name; those of the given names
// at once. Envoy doesn't take it unless both sorts of session resumption are off.
func onDemandContext(v tlsVersions, names ...string) *tlsv3.DownstreamTlsContext {
	selector := &selectorv3.Config{
		ConfigSource:        adsSource,
		CertificateMapper:   extensionConfig("envoy.tls.certificate_mappers.sni", packed(&mapperv3.SNI{DefaultValue: noServerName})),
		PrefetchSecretNames: names,
	}
	return &tlsv3.DownstreamTlsContext{
		SessionTicketKeysType:            &tlsv3.DownstreamTlsContext_DisableStatelessSessionResumption{DisableStatelessSessionResumption: true},
		DisableStatefulSessionResumption: true,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams:                    v.params(),
			AlpnProtocols:                alpn,
			CustomTlsCertificateSelector: extensionConfig("envoy.tls.certificate_selectors.on_demand_secret", packed(selector)),
		},
	}
}

func extensionConfig(name string, config *anypb.Any) *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{Name: name, TypedConfig: config}
}

// onDemandTLS makes the host's certificate, and has it prefetched or used by a chain
// of the host's own.
func (x *Rules) onDemandTLS(fqdn string, t terms, r *index.Reader) {
	own := x.special(t) || isWildcard(fqdn)
	name := fqdn
	if own {
		name = ownSecret + fqdn
	}
	if s := lastGood(r, t.secret); s != nil {
		d := index.Draft{Type: typeSecret, Name: name, Body: certificateSecret(name, s), Sources: []index.ObjectKey{secretKey(t.secret)}}
		if !own {
			// A handshake that succeeds before the routes are there would be told 404.
			d.Refs = []index.ResourceKey{resourceKey(typeScope, planeHTTPS+fqdn), resourceKey(typeRoutes, planeHTTPS+fqdn)}
		}
		r.Emit(d)
	}
	if own {
		x.setChain(fqdn, t, name, r)
		return
	}
	r.SetFact(index.Fact{Key: prefetchGroup(fqdn) + "/" + fqdn})
	if covered(fqdn, r) {
		r.SetFact(index.Fact{Key: factCovered + "/" + fqdn})
	}
}

func secretKey(s secretRef) index.ObjectKey {
	return index.ObjectKey{Kind: kinds.Secret, Namespace: s.namespace, Name: s.name}
}

// special: the chain that all hosts share does not do.
func (x *Rules) special(t terms) bool { return t.tlsVersions != x.opts.anyVersions() }

// cover tells the hosts below a wildcard host that it has a filter chain.
func (x *Rules) cover(fqdn string, r *index.Reader) {
	if _, ok := x.terms(fqdn, r); ok {
		r.SetFact(index.Fact{Key: factCover + "/" + fqdn})
	}
}

// covered reports whether the chain of a wildcard host would be taken for the host.
func covered(fqdn string, r *index.Reader) bool {
	for name := range wildcardsAbove(fqdn) {
		if _, ok := r.Fact(factCover + "/" + name); ok {
			return true
		}
	}
	return false
}

// wildcardsAbove gives the wildcard names that cover a name, the closest first:
// *.b.c and *.c for a.b.c.
func wildcardsAbove(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			_, rest, ok := strings.Cut(name, ".")
			if !ok || !yield("*."+rest) {
				return
			}
			name = rest
		}
	}
}

// goodSecret is the fact of a Secret in this mode: its last version that can be
// served.
func (x *Rules) goodSecret(name string, r *index.Reader) {
	ns, secretName := qualified(name, "")
	o, presence := r.Get(kinds.Secret, ns, secretName)
	if presence != index.Found {
		return
	}
	key := factSecret + "/" + name
	if flaw := o.Note.(*certificateNote).flaw; flaw != "" {
		f := faultf("data", "", "SecretNotValid", "%s", flaw)
		last := r.PreviousFact(key)
		if last == nil {
			r.Problem(f.on(o.ObjectKey, index.Error))
			return
		}
		r.Problem(staleFault(f).on(o.ObjectKey, index.Warning))
		r.SetFact(index.Fact{Key: key, Value: last.Value, Digest: last.Digest})
		return
	}
	s := o.Body.(*corev1.Secret)
	r.SetFact(index.Fact{Key: key, Value: s, Digest: index.DigestOf(s.Data[corev1.TLSCertKey]) ^ index.DigestOf(s.Data[corev1.TLSPrivateKeyKey])})
}

// lastGood gives a Secret as it is, or as it last was when it is broken; nil when
// this process has seen no good version.
func lastGood(r *index.Reader, s secretRef) *corev1.Secret {
	o, presence := r.Get(kinds.Secret, s.namespace, s.name)
	if presence == index.Found && o.Note.(*certificateNote).flaw == "" {
		return o.Body.(*corev1.Secret)
	}
	if f, ok := r.Fact(factSecret + "/" + s.String()); ok {
		return f.Value.(*corev1.Secret)
	}
	return nil
}

// certificateNames gives the name of the Secret that answers for a server name which
// is not written in lower case.
func certificateNames(name string) []string {
	if lower := strings.ToLower(name); lower != name {
		return []string{lower}
	}
	return nil
}

// renameSecret gives a Secret under another name: Envoy refuses one that doesn't
// have the name that it asked for.
func renameSecret(body []byte, name string) []byte {
	const fieldName = 1
	rest := body
	if field, _, n := protowire.ConsumeTag(body); n > 0 && field == fieldName {
		rest = body[n+protowire.ConsumeFieldValue(field, protowire.BytesType, body[n:]):]
	}
	out := make([]byte, 0, len(body)+len(name)+4)
	return append(appendField(out, fieldName, []byte(name)), rest...)
}
