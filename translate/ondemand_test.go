package translate_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	matcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	selectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_selectors/on_demand_secret/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
	"github.com/holdfast-xds/holdfast/translate"
)

var onDemand = translate.Options{TLS: translate.OnDemand}

// What a host is made of on demand. Wildcard hosts have a chain of their own.
func TestGoldenOnDemand(t *testing.T) {
	w := observed(t, onDemand)
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "*.example") + tlsRoot("p", "a.example", "cert") + tlsRoot("wild", "*.example", "cert"))
	w.golden("on-demand.yaml", append(always, "Cluster", "ClusterLoadAssignment", "Secret", "RouteConfiguration http/a.example", "ScopedRouteConfiguration http/a.example")...)
}

func (w *world) listener(name string) *listenerv3.Listener {
	w.t.Helper()
	r := w.resource("Listener", name)
	if r == nil {
		w.t.Fatalf("no listener %s", name)
	}
	m, err := translate.Decode(r)
	if err != nil {
		w.t.Fatal(err)
	}
	show(w.t, r) // validates
	return m.(*listenerv3.Listener)
}

// prefetched gives the names that hidden listeners prefetch, sorted, and how many of
// these there are.
func (w *world) prefetched() (names []string, listeners int) {
	w.t.Helper()
	for r := range w.resources() {
		if !strings.HasPrefix(shortKey(r), "Listener prefetch_") {
			continue
		}
		l := w.listener(r.Name)
		d := &tlsv3.DownstreamTlsContext{}
		s := &selectorv3.Config{}
		unpack(w.t, l.FilterChains[0].TransportSocket.GetTypedConfig(), d)
		unpack(w.t, d.CommonTlsContext.CustomTlsCertificateSelector.TypedConfig, s)
		if n := len(s.PrefetchSecretNames); n < 1 || n > 64 {
			w.t.Errorf("%s prefetches %d", r.Name, n)
		}
		names = append(names, s.PrefetchSecretNames...)
		listeners++
		if !r.ClosedWorld {
			w.t.Errorf("%s could be the first listener that an Envoy gets", r.Name)
		}
	}
	slices.Sort(names)
	return names, listeners
}

func unpack(t *testing.T, from interface{ UnmarshalTo(proto.Message) error }, to proto.Message) {
	t.Helper()
	if err := from.UnmarshalTo(to); err != nil {
		t.Fatal(err)
	}
}

// A host comes and goes: the public listener stays as it is.
func TestOnDemandHost(t *testing.T) {
	w := observed(t, onDemand)
	w.apply(service("a", "port: 80"))
	before := w.resource("Listener", "ingress_https")
	w.apply(tlsSecret(t, "ns", "cert", "a.example") + tlsRoot("p", "a.example", "cert"))
	names, _ := w.prefetched()
	check(t, "prefetched", names, "a.example")
	check(t, "routes", w.routes("https/a.example"), "/ → ns/a/80")
	s := w.resource("Secret", "a.example")
	for _, ref := range []string{"ScopedRouteConfiguration", "RouteConfiguration"} {
		if !slices.Contains(s.Refs, w.resource(ref, "https/a.example").ResourceKey) {
			t.Errorf("the certificate does not wait for %s", ref)
		}
	}
	if w.resource("Secret", "ns/cert") != nil {
		t.Error("the Secret has a resource that nobody uses")
	}
	if w.resource("Listener", "ingress_https") != before {
		t.Error("the public listener has changed")
	}
	c := w.apply(tlsSecret(t, "ns", "cert", "a.example"))
	if len(c.Changed) != 1 || c.Changed[0].Name != "a.example" {
		t.Errorf("a new certificate changes %v", c.Changed)
	}
	w.remove(kinds.HTTPProxy, "ns", "p")
	if names, n := w.prefetched(); n > 0 || w.resource("Secret", "a.example") != nil || w.resource("ScopedRouteConfiguration", "https/a.example") != nil {
		t.Errorf("left: %v", names)
	}
	if w.resource("Listener", "ingress_https") != before {
		t.Error("the public listener has changed")
	}
}

// matched gives the filter chain that the listener's matcher picks for a name.
func (w *world) matched(name string) string {
	w.t.Helper()
	m := w.listener("ingress_https").FilterChainMatcher
	if tree := m.GetMatcherTree(); tree != nil {
		if to, ok := tree.GetExactMatchMap().Map[name]; ok {
			return chainName(w.t, to)
		}
		m = m.OnNoMatch.GetMatcher()
	}
	for _, x := range m.GetMatcherList().Matchers {
		v := x.Predicate.GetSinglePredicate().GetValueMatch()
		if v.GetSuffix() == "" || strings.HasSuffix(name, v.GetSuffix()) {
			return chainName(w.t, x.OnMatch)
		}
	}
	return ""
}

func chainName(t *testing.T, m *matcherv3.Matcher_OnMatch) string {
	t.Helper()
	s := &wrapperspb.StringValue{}
	unpack(t, m.GetAction().TypedConfig, s)
	return s.Value
}

// Wildcard hosts and those with protocol versions of their own have their own chains,
// with Secrets that no handshake can ask for; the longest suffix wins, and an exact
// host is never taken for one below a wildcard host.
func TestOnDemandOwnChains(t *testing.T) {
	w := observed(t, onDemand)
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "*.example") +
		tlsRoot("p", "a.b.example", "cert") + tlsRoot("q", "q.test", "cert"))
	public := w.resource("Listener", "ingress_https")
	w.apply(tlsRoot("wild", "*.example", "cert") + tlsRoot("wilder", "*.b.example", "cert") +
		proxy("strict", `virtualhost: {fqdn: s.example, tls: {secretName: cert, minimumProtocolVersion: "1.3"}}`+"\nroutes: [{"+toA+"}]"))
	for name, want := range map[string]string{
		"a.b.example": "on-demand/", "c.b.example": "*.b.example", "d.c.b.example": "*.b.example", "x.example": "*.example",
		"s.example": "s.example", "q.test": "on-demand/", "nobody.test": "on-demand/",
	} {
		if got := w.matched(name); got != want {
			t.Errorf("%s is led to the chain %q, want %q", name, got, want)
		}
	}
	names, _ := w.prefetched()
	check(t, "prefetched", names, "a.b.example\nq.test")
	for _, name := range []string{"*.example", "*.b.example", "s.example"} {
		if w.resource("Secret", name) != nil || w.resource("Secret", "chain/"+name) == nil {
			t.Errorf("%s: not the Secret of a chain", name)
		}
		if w.resource("RouteConfiguration", "https/"+name) == nil {
			t.Errorf("%s has no routes", name)
		}
	}
	for _, p := range []string{"wild", "wilder", "strict"} {
		w.remove(kinds.HTTPProxy, "ns", p)
	}
	if !bytes.Equal(w.resource("Listener", "ingress_https").Body, public.Body) {
		t.Error("the listener is not what it was")
	}
	if got := w.matched("a.b.example"); got != "on-demand/" {
		t.Errorf("a.b.example is led to %q", got)
	}
}

// A host's group does not change when others come and go, and no group is too large.
func TestPrefetchGroups(t *testing.T) {
	w := observed(t, onDemand)
	w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "cert", "*.example"))
	w.addHosts(spread(300))
	before, _ := w.prefetched()
	check(t, "prefetched", before, strings.Join(slices.Sorted(slices.Values(spread(300))), "\n"))
	if c := w.addHosts([]string{"one-more.example"}); listenersOf(c) != 1 {
		t.Errorf("one more host changes %v", c.Changed)
	}
	// A group that grows too large is halved, and the others stay.
	full := sameGroup(66)
	w.addHosts(full[:64])
	if c := w.addHosts(full[64:65]); listenersOf(c) != 3 {
		t.Errorf("a host too many changes %v", c.Changed)
	}
	names, _ := w.prefetched()
	if c := w.addHosts(full[65:]); listenersOf(c) != 1 {
		t.Errorf("the next one changes %v", c.Changed)
	}
	if now, _ := w.prefetched(); len(slices.Compact(now)) != len(names)+1 {
		t.Errorf("%d names, there were %d", len(now), len(names))
	}
}

// addHosts adds TLS hosts in one commit.
func (w *world) addHosts(names []string) index.Commit {
	var changes []index.Change
	for _, fqdn := range names {
		o := parse(w.t, tlsRoot(strings.ReplaceAll(fqdn, ".", "-"), fqdn, "cert"))[0]
		w.now++
		o.Version = w.now
		changes = append(changes, index.Upsert{Object: o, InOrder: true})
	}
	return w.ix.Apply(index.Cause{}, changes...)
}

func listenersOf(c index.Commit) int {
	n := 0
	for _, k := range c.Changed {
		if strings.HasPrefix(k.String(), "Listener") {
			n++
		}
	}
	return n
}

func spread(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("h%d.example", i))
	}
	return out
}

// sameGroup gives names of one group that h0 to h299 leave empty.
func sameGroup(n int) []string {
	taken := map[uint64]bool{}
	for _, name := range append(spread(300), "one-more.example") {
		taken[xxhash.Sum64String(name)%256] = true
	}
	group := uint64(0)
	for taken[group] {
		group++
	}
	var out []string
	for i := 0; len(out) < n; i++ {
		if name := fmt.Sprintf("g%d.example", i); xxhash.Sum64String(name)%256 == group {
			out = append(out, name)
		}
	}
	return out
}

// HF-07: as with chains, a broken Secret keeps the last good certificate in service,
// for hosts that come later as well.
func TestOnDemandBrokenSecret(t *testing.T) {
	w := observed(t, onDemand)
	w.apply(service("a", "port: 80") + "\n---\n" + tlsRoot("p", "a.example", "cert") + tlsSecret(t, "ns", "cert", "a.example"))
	before := w.resource("Secret", "a.example").Body
	w.apply(broken(t, "ns", "cert"))
	if r := w.resource("Secret", "a.example"); r == nil || !bytes.Equal(r.Body, before) {
		t.Fatal("the last good certificate is gone")
	}
	const kept = "invalid TLS private key: failed to parse PEM block; the last good certificate stays in service"
	check(t, "secret", w.problems("cert"), "warning data /SecretNotValid: "+kept)
	check(t, "proxy", w.problems("p"), `warning spec.virtualhost.tls.secretName TLSError/SecretNotValid: Spec.VirtualHost.TLS Secret "cert" is invalid: `+kept)
	w.apply(tlsRoot("q", "b.example", "cert"))
	if w.resource("Secret", "b.example") == nil {
		t.Error("a later host has no certificate")
	}
	w.apply(tlsSecret(t, "ns", "cert", "a.example"))
	if bytes.Equal(w.resource("Secret", "a.example").Body, before) {
		t.Error("the new certificate is not in service")
	}
	w.remove(kinds.Secret, "ns", "cert")
	if w.resource("Secret", "a.example") != nil || w.resource("ScopedRouteConfiguration", "https/a.example") != nil {
		t.Error("served without a certificate")
	}
}

// HF-07: an Envoy that comes back with an older version keeps its host, whichever
// chain it has.
func TestOnDemandBrokenSecretAfterRestart(t *testing.T) {
	for fqdn, name := range map[string]string{"a.example": "a.example", "*.example": "chain/*.example"} {
		w := observed(t, onDemand)
		w.apply(service("a", "port: 80") + "\n---\n" + tlsSecret(t, "ns", "other", "b.example") + tlsRoot("q", "b.example", "other"))
		k := index.ResourceKey{Type: w.resource("Secret", "b.example").Type, Name: name}
		w.apply(tlsRoot("p", fqdn, "cert") + broken(t, "ns", "cert"))
		if w.resource("RouteConfiguration", "https/"+fqdn) != nil {
			t.Errorf("%s is served without a certificate", fqdn)
		}
		w.ix.Apply(index.Cause{}, index.Witness{Resource: k})
		if w.resource("RouteConfiguration", "https/"+fqdn) == nil {
			t.Errorf("%s is not served any more", fqdn)
		}
		if w.resource("Secret", name) != nil {
			t.Error("made a certificate out of a broken Secret")
		}
		referred := false
		for r := range w.resources() {
			referred = referred || slices.Contains(r.Refs, k)
		}
		if !referred {
			t.Errorf("no listener names the Secret %s, so it would be removed", name)
		}
	}
}

// A server name is found however it is written, and gets the certificate under the
// name that it asked for, which Envoy insists on.
func TestOnDemandNames(t *testing.T) {
	w := observed(t, onDemand)
	w.apply(service("a", "port: 80") + "\n---\n" + tlsRoot("p", "a.example", "cert") + tlsSecret(t, "ns", "cert", "a.example"))
	s := w.ix.Snapshot()
	exact := w.resource("Secret", "a.example")
	alias := s.Resolve(index.ResourceKey{Type: exact.Type, Name: "A.Example"})
	if alias == nil {
		t.Fatal("A.Example is nobody")
	}
	m, err := translate.Decode(alias)
	if err != nil {
		t.Fatal(err)
	}
	if m.(*tlsv3.Secret).Name != "A.Example" {
		t.Errorf("it is given %q", m.(*tlsv3.Secret).Name)
	}
	was, err := translate.Decode(exact)
	if err != nil {
		t.Fatal(err)
	}
	if m.(*tlsv3.Secret).Name = "a.example"; !proto.Equal(m, was) {
		t.Error("it is another certificate")
	}
	if s.Resolve(index.ResourceKey{Type: exact.Type, Name: "B.example"}) != nil {
		t.Error("B.example has a certificate")
	}
}
