package main

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// clientTLS are the files with which Envoy connects to holdfast.
type clientTLS struct{ ca, cert, key string }

// transportSocket checks that the server's certificate is for the address that
// Envoy was given: the same CA signs other Envoys' certificates.
func (t *clientTLS) transportSocket(server address) (*corev3.TransportSocket, error) {
	kind, sni := tlsv3.SubjectAltNameMatcher_DNS, server.host
	if _, isIP := server.ip(); isIP {
		kind, sni = tlsv3.SubjectAltNameMatcher_IP_ADDRESS, "" // RFC 6066: no IP address in SNI
	}
	config, err := anypb.New(&tlsv3.UpstreamTlsContext{
		Sni: sni,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams:       &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3},
			AlpnProtocols:   []string{"h2"},
			TlsCertificates: []*tlsv3.TlsCertificate{{CertificateChain: file(t.cert), PrivateKey: file(t.key)}},
			ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
				TrustedCa: file(t.ca),
				MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
					SanType: kind,
					Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: server.host}},
				}},
			}},
		},
	})
	if err != nil {
		return nil, err
	}
	return &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: config}}, nil
}

func file(path string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: path}}
}
