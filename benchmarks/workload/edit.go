package workload

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

// Edit is a sort of change that people and controllers make.
type Edit string

// The edits.
const (
	Route         Edit = "route"          // a header value in a route of one host
	Endpoint      Edit = "endpoint"       // one address of one EndpointSlice
	NewHost       Edit = "new-host"       // a host with Service and EndpointSlice
	DeletedHost   Edit = "deleted-host"   // one that NewHost added
	TLSHost       Edit = "tls-host"       // a host with a certificate
	Certificate   Edit = "certificate"    // a Secret's certificate is rotated
	ClusterPolicy Edit = "cluster-policy" // a timeout of idle connections, so another cluster
)

// Edits lists all sorts in the order of a report. A deletion follows an addition.
var Edits = []Edit{Route, Endpoint, NewHost, DeletedHost, TLSHost, Certificate, ClusterPolicy}

// Change is an object that is written or deleted.
type Change struct {
	Object  fixture.Object
	Deleted bool
}

// Next gives the next edit of a sort, and the host that it is about.
func (w *Workload) Next(e Edit) (fixture.Host, []Change) {
	turn := w.turns[e]
	w.turns[e]++
	switch e {
	case Route:
		return w.edited(plain(20, turn), func(p *contourv1.HTTPProxy) {
			p.Spec.Routes[0].RequestHeadersPolicy = &contourv1.HeadersPolicy{Set: []contourv1.HeaderValue{{Name: "X-Edit", Value: fmt.Sprintf("%06d", turn)}}}
		})
	case ClusterPolicy:
		return w.edited(plain(50, turn), func(p *contourv1.HTTPProxy) {
			for i := range p.Spec.Routes {
				r := &p.Spec.Routes[i]
				if r.TimeoutPolicy == nil {
					r.TimeoutPolicy = &contourv1.TimeoutPolicy{}
				}
				r.TimeoutPolicy.IdleConnection = fmt.Sprintf("%ds", 60+turn)
			}
		})
	case Endpoint:
		return w.endpoint(turn)
	case Certificate:
		return w.certificate(turn)
	case NewHost:
		return w.add(firstNew + turn/90*100 + 10 + turn%90)
	case TLSHost:
		return w.add(firstNew + turn/10*100 + turn%10)
	case DeletedHost:
		return w.remove()
	}
	panic("workload: unknown edit " + string(e))
}

// plain gives hosts without TLS, below Smallest: 60 in turn, apart from those of
// another from.
func plain(from, turn int) int { return turn%60/20*100 + from + turn%20 }

func (w *Workload) edited(i int, edit func(*contourv1.HTTPProxy)) (fixture.Host, []Change) {
	h := w.gen.Host(i)
	for _, o := range h.Objects {
		if p, ok := o.(*contourv1.HTTPProxy); ok && p.Spec.VirtualHost != nil {
			edit(p)
			return h, []Change{{Object: p}}
		}
	}
	panic("workload: no root HTTPProxy in host " + h.Name)
}

// endpoint replaces the address in the first EndpointSlice of a host by another
// one: of another backend, so that requests can tell.
func (w *Workload) endpoint(turn int) (fixture.Host, []Change) {
	i := turn%100 + 100 // apart from the hosts of other edits as far as possible
	other := w.gen.Host(i + 1 + turn/100%3)
	h := w.gen.Host(i)
	slice, from := firstSlice(h), firstSlice(other)
	slice.Endpoints[0].Addresses = from.Endpoints[0].Addresses
	slice.Ports = from.Ports
	return h, []Change{{Object: slice}}
}

func firstSlice(h fixture.Host) *discoveryv1.EndpointSlice {
	for _, o := range h.Objects {
		if s, ok := o.(*discoveryv1.EndpointSlice); ok {
			return s
		}
	}
	panic("workload: no EndpointSlice in host " + h.Name)
}

func (w *Workload) certificate(turn int) (fixture.Host, []Change) {
	h := w.gen.Host(turn%3*100 + turn/3%10)
	crt, key := w.gen.Certificate(h.FQDN, fmt.Sprintf("v%06d.%s", turn, h.FQDN))
	for _, o := range h.Objects {
		if s, ok := o.(*corev1.Secret); ok {
			s.Data[corev1.TLSCertKey], s.Data[corev1.TLSPrivateKeyKey] = crt, key
			return h, []Change{{Object: s}}
		}
	}
	panic("workload: no Secret in host " + h.Name)
}

// CertificateNames gives the DNS names of the certificate in an edit of that sort.
func (w *Workload) CertificateNames(changes []Change) []string {
	s := changes[0].Object.(*corev1.Secret)
	block, _ := pem.Decode(s.Data[corev1.TLSCertKey])
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		panic("workload: " + err.Error()) // we made it
	}
	return c.DNSNames
}

func (w *Workload) add(i int) (fixture.Host, []Change) {
	h := w.gen.Host(i)
	var out []Change
	for _, o := range h.Objects {
		out = append(out, Change{Object: o})
	}
	if !h.TLS {
		w.added = append(w.added, i)
	}
	return h, out
}

func (w *Workload) remove() (fixture.Host, []Change) {
	if len(w.added) == 0 {
		panic("workload: a deletion without an addition before it")
	}
	h := w.gen.Host(w.added[0])
	w.added = w.added[1:]
	var out []Change
	for i := len(h.Objects) - 1; i >= 0; i-- {
		out = append(out, Change{Object: h.Objects[i], Deleted: true})
	}
	return h, out
}
