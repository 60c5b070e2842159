package main

import (
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

func TestRedact(t *testing.T) {
	key := &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: []byte("SESAME")}}
	public := &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: "public"}}
	pair := &tlsv3.TlsCertificate{CertificateChain: public, PrivateKey: key}
	socket, err := anypb.New(&tlsv3.UpstreamTlsContext{CommonTlsContext: &tlsv3.CommonTlsContext{TlsCertificates: []*tlsv3.TlsCertificate{pair}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]proto.Message{
		"certificate": &tlsv3.Secret{Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: pair}},
		"ticket keys": &tlsv3.Secret{Name: "public", Type: &tlsv3.Secret_SessionTicketKeys{SessionTicketKeys: &tlsv3.TlsSessionTicketKeys{Keys: []*corev3.DataSource{key}}}},
		"generic":     &tlsv3.Secret{Name: "public", Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: key}}},
		"inside an Any": &clusterv3.Cluster{TransportSocket: &corev3.TransportSocket{ConfigType: &corev3.TransportSocket_TypedConfig{
			TypedConfig: socket,
		}}},
		"inside a map of Any": &clusterv3.Cluster{TypedExtensionProtocolOptions: map[string]*anypb.Any{"x": socket}},
	} {
		m = proto.Clone(m)
		if err := redact(m.ProtoReflect()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		text := protojson.Format(m)
		if strings.Contains(text, "SESAME") || strings.Contains(text, "U0VTQU1F") || !strings.Contains(text, "public") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
