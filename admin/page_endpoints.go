package admin

import (
	"net"
	"strconv"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/translate"
)

// endpointsOf gives the addresses of a ClusterLoadAssignment. It is the only body
// that is ever looked into for a page.
func endpointsOf(r *index.Resource) []string {
	m, err := translate.Decode(r)
	if err != nil {
		return nil
	}
	a, ok := m.(*endpointv3.ClusterLoadAssignment)
	if !ok {
		return nil
	}
	var out []string
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			s := e.GetEndpoint().GetAddress().GetSocketAddress()
			out = append(out, net.JoinHostPort(s.GetAddress(), strconv.Itoa(int(s.GetPortValue()))))
		}
	}
	return out
}
