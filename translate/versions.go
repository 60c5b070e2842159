package translate

import (
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/index"
)

// The protocol versions, as Contour's API writes them.
const (
	tls12 = "1.2"
	tls13 = "1.3"
)

// tlsVersions are the lowest and the highest protocol version.
type tlsVersions struct {
	low, high tlsv3.TlsParameters_TlsProtocol
}

func (v tlsVersions) params() *tlsv3.TlsParameters {
	return &tlsv3.TlsParameters{TlsMinimumProtocolVersion: v.low, TlsMaximumProtocolVersion: v.high}
}

// readVersions reads the bounds; what is not one of 1.2 and 1.3 is the default.
func readVersions(low, high string) tlsVersions {
	v := tlsVersions{tlsv3.TlsParameters_TLSv1_2, tlsv3.TlsParameters_TLSv1_3}
	if low == tls13 {
		v.low = tlsv3.TlsParameters_TLSv1_3
	}
	if high == tls12 {
		v.high = tlsv3.TlsParameters_TLSv1_2
	}
	return v
}

func proxyVersions(t *contourv1.TLS) tlsVersions {
	return readVersions(t.MinimumProtocolVersion, t.MaximumProtocolVersion)
}

// versions raises what a host asks for to what all hosts must have. It is a problem
// when the host's highest is too low: the host then has the lowest that it may.
func (o *Options) versions(asked tlsVersions, k index.ObjectKey, field string) (tlsVersions, []index.Problem) {
	floor := readVersions(o.MinimumTLS, "").low
	v := tlsVersions{max(asked.low, floor), max(asked.high, floor)}
	if v.high == asked.high {
		return v, nil
	}
	f := faultf(field, tlsError, "TLSVersionTooLow", "the maximum protocol version is lower than the lowest for all hosts, TLS %s, which is used", o.MinimumTLS)
	return v, []index.Problem{f.on(k, index.Warning)}
}

// anyVersions are those of a host that asks for none.
func (o *Options) anyVersions() tlsVersions { return readVersions(o.MinimumTLS, "") }
