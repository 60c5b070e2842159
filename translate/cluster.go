package translate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	upstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// upstream is everything that tells two clusters of a Service port apart. Its
// name covers all of it.
type upstream struct {
	namespace, service string
	port               int32
	protocol           string
	sni                string
	// idleConnection is the timeout of idle connections, in nanoseconds; negative
	// is Envoy's default, 0 is none.
	idleConnection time.Duration
}

const defaultTimeout time.Duration = -1

// name is <namespace>/<service>/<port>, and when something differs from the
// plain cluster a hash of what differs. What is plain is not written, so that
// names stay when upstream gains a field.
func (u upstream) name() string {
	base := u.namespace + "/" + u.service + "/" + strconv.Itoa(int(u.port))
	var b strings.Builder
	field := func(k, v string) { b.WriteString(k + "=" + strconv.Quote(v) + "\n") }
	if u.protocol != "" {
		field("protocol", u.protocol)
	}
	if u.sni != "" {
		field("sni", u.sni)
	}
	if u.idleConnection != defaultTimeout {
		field("idleConnection", u.idleConnection.String())
	}
	if b.Len() == 0 {
		return base
	}
	return fmt.Sprintf("%s/%08x", base, uint32(xxhash.Sum64String(b.String())))
}

// speaksTLS reports whether connections to the protocol are encrypted.
func speaksTLS(protocol string) bool { return protocol == protocolTLS || protocol == protocolH2 }

// cluster makes a cluster, and demands its endpoints. Which ports of EndpointSlices
// it is about, only the Service tells.
func (x *Rules) cluster(name string, u upstream, r *index.Reader) {
	o, presence := r.Get(kinds.Service, u.namespace, u.service)
	if presence != index.Found {
		return
	}
	p, err := servicePortOf(o.Body.(*corev1.Service), portRef{number: u.port})
	if err != nil {
		return
	}
	port := servicePort{u.namespace, u.service, p.Name, p.Port}
	r.Emit(index.Draft{
		Type: typeCluster, Name: name, Body: marshal(u.message(name, port.name())),
		Refs:    []index.ResourceKey{resourceKey(typeEndpoints, port.name())},
		Sources: []index.ObjectKey{o.ObjectKey},
	})
	r.Demand(derivation(formEndpoints, port.name()), port, append([]index.Kind{kinds.Service}, hostKinds...)...)
}

// Parts that all clusters share.
var (
	connectTimeout = durationpb.New(2 * time.Second)
	// noPanic: when all endpoints are unhealthy, none is used.
	noPanic  = &clusterv3.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{}}
	eds      = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	http2    = &corev3.Http2ProtocolOptions{}
	clientV3 = &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
		TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
	}
)

func (u upstream) message(name, endpoints string) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                          name,
		AltStatName:                   u.namespace + "_" + u.service + "_" + strconv.Itoa(int(u.port)),
		ClusterDiscoveryType:          eds,
		EdsClusterConfig:              &clusterv3.Cluster_EdsClusterConfig{EdsConfig: adsSource, ServiceName: endpoints},
		ConnectTimeout:                connectTimeout,
		CommonLbConfig:                noPanic,
		TransportSocket:               u.transport(),
		TypedExtensionProtocolOptions: u.protocolOptions(),
	}
}

func (u upstream) transport() *corev3.TransportSocket {
	if !speaksTLS(u.protocol) {
		return nil
	}
	c := &tlsv3.UpstreamTlsContext{Sni: u.sni, CommonTlsContext: &tlsv3.CommonTlsContext{TlsParams: clientV3}}
	if u.protocol == protocolH2 {
		c.CommonTlsContext.AlpnProtocols = []string{"h2"}
	}
	return tlsSocket(packed(c))
}

func tlsSocket(config *anypb.Any) *corev3.TransportSocket {
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: config},
	}
}

func (u upstream) protocolOptions() map[string]*anypb.Any {
	h2 := u.protocol == protocolH2 || u.protocol == protocolH2C
	if !h2 && u.idleConnection == defaultTimeout {
		return nil
	}
	o := &upstreamv3.HttpProtocolOptions{}
	explicit := &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{},
	}
	if h2 {
		explicit.ProtocolConfig = &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: http2}
	}
	o.UpstreamProtocolOptions = &upstreamv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit}
	if u.idleConnection != defaultTimeout {
		o.CommonHttpProtocolOptions = &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(u.idleConnection)}
	}
	return map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": packed(o)}
}
