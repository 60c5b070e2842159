package translate

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// servicePort is what a ClusterLoadAssignment is about.
type servicePort struct {
	namespace, service string
	portName           string
	port               int32
}

// name is <namespace>/<service>/<port name>, with the number for an unnamed port.
// A name that looks like a number is marked, since a Service may swap the two.
func (p servicePort) name() string {
	port := p.portName
	switch {
	case port == "":
		port = strconv.Itoa(int(p.port))
	case strings.Trim(port, "0123456789") == "":
		port = "name=" + port
	}
	return p.namespace + "/" + p.service + "/" + port
}

// endpoints makes a ClusterLoadAssignment of the ready endpoints in all of the
// Service's slices, each once. It is made even when there are none.
func (x *Rules) endpoints(name string, p servicePort, r *index.Reader) {
	var found []netip.AddrPort
	var sources []index.ObjectKey
	for _, o := range r.Range(kinds.EndpointSlice, lookupSlices(p.namespace, p.service), index.NeedMonotone) {
		sources = append(sources, o.ObjectKey)
		found = p.appendReady(found, o.Body.(*discoveryv1.EndpointSlice))
	}
	if len(found) == 0 {
		r.ReliesOnAbsence(kinds.EndpointSlice)
	}
	slices.SortFunc(found, func(a, b netip.AddrPort) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Port(), b.Port()))
	})
	found = slices.Compact(found)
	r.Emit(index.Draft{Type: typeEndpoints, Name: name, Body: marshal(assignment(name, found)), Sources: sources})
}

func (p servicePort) appendReady(to []netip.AddrPort, s *discoveryv1.EndpointSlice) []netip.AddrPort {
	for i := range s.Ports {
		port := &s.Ports[i]
		if !p.serves(port) {
			continue
		}
		for j := range s.Endpoints {
			e := &s.Endpoints[j]
			if ready := e.Conditions.Ready; (ready != nil && !*ready) || len(e.Addresses) == 0 {
				continue
			}
			// The API says that all addresses are equally good, and that a client
			// may use only the first.
			if a, err := netip.ParseAddr(e.Addresses[0]); err == nil && a.Zone() == "" {
				to = append(to, netip.AddrPortFrom(a, uint16(*port.Port)))
			}
		}
	}
	return to
}

// serves: a named Service port is served by the slice port of that name; an
// unnamed one, which is alone, by any.
func (p servicePort) serves(port *discoveryv1.EndpointPort) bool {
	if port.Port == nil || *port.Port < 1 || *port.Port > 65535 {
		return false
	}
	if port.Protocol != nil && *port.Protocol != corev1.ProtocolTCP {
		return false
	}
	return p.portName == "" || (port.Name != nil && *port.Name == p.portName)
}

func assignment(name string, endpoints []netip.AddrPort) *endpointv3.ClusterLoadAssignment {
	out := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	if len(endpoints) == 0 {
		return out
	}
	locality := &endpointv3.LocalityLbEndpoints{LbEndpoints: make([]*endpointv3.LbEndpoint, 0, len(endpoints))}
	for _, e := range endpoints {
		locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socketAddress(e)}},
		})
	}
	out.Endpoints = []*endpointv3.LocalityLbEndpoints{locality}
	return out
}

func socketAddress(a netip.AddrPort) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       a.Addr().String(),
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.Port())},
	}}}
}
