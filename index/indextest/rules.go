// Package indextest has a small ingress in place of Kubernetes and Envoy: index
// rules that make resources of the six real types from five toy kinds, and a
// one-line form of every change, for the tests of index and of delta.
//
//	host h1 fqdn=a svc=web,api cert=c1 age=3 @12   a host: oldest owner of its fqdn wins
//	path p1 fqdn=a svc=web @13                     adds paths to a host, or makes one
//	svc web port=80 @14                            a service
//	slice web-1 of=web addr=10.0.0.1 @15           endpoints of a service
//	cert c1 pem=x @16                              a certificate
//
//	host a ─▶ scope/a ─▶ rc/a ─▶ cluster/web ─▶ endpoints/web
//	   └────▶ listener/https ─▶ secret/c1
package indextest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-xds/holdfast/index"
)

// The kinds. Host stands for HTTPProxy (its API may not be served at all), Path
// for Ingress, Cert for Secret.
const (
	Host  index.Kind = "host"
	Path  index.Kind = "path"
	Svc   index.Kind = "svc"
	Slice index.Kind = "slice"
	Cert  index.Kind = "cert"
)

// The resource types.
const (
	Cluster   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	Endpoints = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	Listener  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	Scope     = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	Routes    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	Secret    = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
)

// Fields are an object's body: the key=value words of its line.
type Fields map[string]string

func (f Fields) list(key string) []string {
	if f[key] == "" {
		return nil
	}
	return strings.Split(f[key], ",")
}

// Rules implements index.Rules.
type Rules struct{}

var _ index.Rules = Rules{}

// Kinds of the toy ingress.
func (Rules) Kinds() []index.KindSpec {
	return []index.KindSpec{
		{Kind: Host, Code: "H"},
		{Kind: Path, Code: "P", Required: true},
		{Kind: Svc, Code: "S", Required: true},
		{Kind: Slice, Code: "E", Required: true},
		{Kind: Cert, Code: "T", Required: true},
	}
}

// Types of the toy ingress.
func (Rules) Types() []index.TypeSpec {
	hosts := []index.Kind{Host, Path}
	routed := append([]index.Kind{Svc}, hosts...)
	return []index.TypeSpec{
		{URL: Cluster, Feeds: routed},
		{URL: Endpoints, Feeds: append([]index.Kind{Slice}, routed...)},
		{URL: Listener, Feeds: hosts},
		{URL: Scope, Feeds: hosts},
		{URL: Routes, Feeds: routed},
		{URL: Secret, Feeds: []index.Kind{Cert, Host}},
	}
}

// Prepare gives a host and a path their fqdn, and a slice its service.
func (Rules) Prepare(o *index.Object) {
	switch o.Kind {
	case Host, Path:
		o.Lookups = []string{"fqdn=" + fqdn(o)}
	case Slice:
		o.Lookups = []string{"of=" + fields(o)["of"]}
	default:
		o.Lookups = nil
	}
}

// Subjects: a host or path may bring its fqdn into being.
func (Rules) Subjects(o *index.Object) []index.DerivationID {
	if o.Kind == Host || o.Kind == Path {
		return []index.DerivationID{index.DerivationID("host/" + fqdn(o))}
	}
	return nil
}

// Roots are the two listeners.
func (Rules) Roots() []index.DerivationID { return []index.DerivationID{"http", "https"} }

// Rank lets facts flow upwards.
func (Rules) Rank(id index.DerivationID) int {
	form, _, _ := strings.Cut(string(id), "/")
	return slices.Index([]string{"secret", "host", "cluster", "endpoints", "http", "https"}, form)
}

// Derive makes one subject's resources.
func (Rules) Derive(id index.DerivationID, _ any, r *index.Reader) {
	form, name, _ := strings.Cut(string(id), "/")
	switch form {
	case "host":
		host(name, r)
	case "cluster":
		cluster(name, r)
	case "endpoints":
		endpoints(name, r)
	case "secret":
		secret(name, r)
	case "http":
		r.Facts("host", index.NeedStrict, Host, Path)
		r.Emit(index.Draft{Type: Listener, Name: "http", Body: []byte("http"), ClosedWorld: true})
	case "https":
		https(r)
	default:
		panic("indextest: unknown derivation " + string(id))
	}
}

func fields(o *index.Object) Fields { return o.Body.(Fields) }

func fqdn(o *index.Object) string {
	if f := fields(o)["fqdn"]; f != "" {
		return f
	}
	return o.Name
}

// owner is the oldest host; the others are told that they lost.
func owner(fqdn string, r *index.Reader) *index.Object {
	hosts := r.Range(Host, "fqdn="+fqdn, index.NeedStrict)
	if len(hosts) == 0 {
		return nil
	}
	slices.SortStableFunc(hosts, func(a, b *index.Object) int { return strings.Compare(fields(a)["age"], fields(b)["age"]) })
	for _, loser := range hosts[1:] {
		r.Problem(index.Problem{Object: loser.ObjectKey, Severity: index.Error, Message: fqdn + " belongs to " + hosts[0].Name})
	}
	return hosts[0]
}

func host(fqdn string, r *index.Reader) {
	h := owner(fqdn, r)
	paths := r.Range(Path, "fqdn="+fqdn, index.NeedMonotone)
	if h == nil && len(paths) == 0 {
		return
	}
	if h != nil && fields(h)["invalid"] != "" {
		r.Problem(index.Problem{Object: h.ObjectKey, Severity: index.Error, Message: "invalid"})
		return
	}
	r.SetFact(index.Fact{Key: "host/" + fqdn})
	var actions, clusters []string
	for _, o := range slices.Concat([]*index.Object{h}, paths) {
		if o == nil {
			continue
		}
		for _, svc := range fields(o).list("svc") {
			if action := route(o, svc, r); action == "503" {
				actions = append(actions, svc+":503")
			} else if !slices.Contains(clusters, svc) {
				actions = append(actions, svc)
				clusters = append(clusters, svc)
			}
		}
	}
	if h != nil && fields(h)["cert"] != "" {
		cert := fields(h)["cert"]
		r.Demand(index.DerivationID("secret/"+cert), nil, Host)
		r.SetFact(index.Fact{Key: "tls/" + fqdn, Value: cert, Digest: index.DigestOf([]byte(cert))})
	}
	refs := make([]index.ResourceKey, 0, len(clusters))
	for _, c := range clusters {
		refs = append(refs, index.ResourceKey{Type: Cluster, Name: c})
	}
	r.Emit(index.Draft{Type: Routes, Name: fqdn, Body: []byte(strings.Join(actions, " ")), Refs: refs})
	r.Emit(index.Draft{Type: Scope, Name: fqdn, Body: []byte(fqdn), Refs: []index.ResourceKey{{Type: Routes, Name: fqdn}}})
}

// route is "503" when the service is known to be missing. As long as that is not
// known the route is kept.
func route(o *index.Object, svc string, r *index.Reader) string {
	if _, p := r.Get(Svc, "", svc); p == index.Missing {
		r.Problem(index.Problem{Object: o.ObjectKey, Severity: index.Error, Field: "svc", Message: "svc " + svc + " not found"})
		return "503"
	}
	r.Demand(index.DerivationID("cluster/"+svc), nil, Host, Path)
	return svc
}

func cluster(name string, r *index.Reader) {
	s, p := r.Get(Svc, "", name)
	if p != index.Found {
		return
	}
	r.Demand(index.DerivationID("endpoints/"+name), nil, Host, Path, Svc)
	r.Emit(index.Draft{
		Type: Cluster, Name: name, Body: fmt.Appendf(nil, "%s port=%s", name, fields(s)["port"]),
		Refs: []index.ResourceKey{{Type: Endpoints, Name: name}}, Sources: []index.ObjectKey{s.ObjectKey},
	})
}

func endpoints(name string, r *index.Reader) {
	var addrs []string
	for _, s := range r.Range(Slice, "of="+name, index.NeedMonotone) {
		addrs = append(addrs, fields(s).list("addr")...)
	}
	if len(addrs) == 0 {
		r.ReliesOnAbsence(Slice)
	}
	r.Emit(index.Draft{Type: Endpoints, Name: name, Body: []byte(strings.Join(addrs, " "))})
}

func secret(name string, r *index.Reader) {
	c, p := r.Get(Cert, "", name)
	if p != index.Found {
		return
	}
	r.SetFact(index.Fact{Key: "secret/" + name})
	r.Emit(index.Draft{Type: Secret, Name: name, Body: []byte(fields(c)["pem"]), Sources: []index.ObjectKey{c.ObjectKey}})
}

// https names the certificates that are there; a listener that names one which is
// not would block.
func https(r *index.Reader) {
	var chains []string
	var refs []index.ResourceKey
	for _, f := range r.Facts("tls", index.NeedStrict, Host) {
		cert := f.Value.(string)
		if _, ok := r.Fact("secret/" + cert); !ok {
			r.ReliesOnAbsence(Cert)
			continue
		}
		chains = append(chains, f.Key+"="+cert)
		if ref := (index.ResourceKey{Type: Secret, Name: cert}); !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	if len(chains) == 0 {
		return
	}
	r.Emit(index.Draft{Type: Listener, Name: "https", Body: []byte(strings.Join(chains, " ")), Refs: refs, ClosedWorld: true})
}
