package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	overloadv3 "github.com/envoyproxy/go-control-plane/envoy/config/overload/v3"
	internallistenerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3"
	downstreamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// xdsCluster is the name under which Envoy knows holdfast. It begins like no
// name that we give to a cluster.
const xdsCluster = "holdfast"

// envoyBootstrap makes Envoy's bootstrap from checked values.
type envoyBootstrap struct {
	xds, admin     address
	nodeID         string
	fullStats      bool
	maxConnections uint64
	tls            *clientTLS // nil: plain text
}

// json gives the bootstrap with stable bytes. protojson varies its spaces on
// purpose; indenting anew takes that out.
func (b *envoyBootstrap) json() ([]byte, error) {
	m, err := b.message()
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	var compact, out bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	err = json.Indent(&out, compact.Bytes(), "", "  ")
	return out.Bytes(), err
}

func (b *envoyBootstrap) message() (*bootstrapv3.Bootstrap, error) {
	cluster, err := b.cluster()
	if err != nil {
		return nil, err
	}
	internal, err := extension("envoy.bootstrap.internal_listener", &internallistenerv3.InternalListener{})
	if err != nil {
		return nil, err
	}
	overload, err := b.overload()
	if err != nil {
		return nil, err
	}
	return &bootstrapv3.Bootstrap{
		Node:             &corev3.Node{Id: b.nodeID, Cluster: "holdfast"},
		StaticResources:  &bootstrapv3.Bootstrap_StaticResources{Clusters: []*clusterv3.Cluster{cluster}},
		DynamicResources: dynamicResources(),
		// Idle clusters cost little memory: they are built when a request comes.
		ClusterManager:      &bootstrapv3.ClusterManager{EnableDeferredClusterCreation: true},
		DeferredStatOptions: &bootstrapv3.Bootstrap_DeferredStatOptions{EnableDeferredCreationStats: true},
		StatsConfig:         b.statsConfig(),
		OverloadManager:     overload,
		LayeredRuntime:      runtimeLayers(),
		// Listeners inside Envoy keep certificates warm.
		BootstrapExtensions: []*corev3.TypedExtensionConfig{internal},
		Admin: &bootstrapv3.Admin{
			Address:               b.admin.envoy(),
			ProfilePath:           "/dev/null",
			IgnoreGlobalConnLimit: true, // an Envoy that is full still tells why
		},
	}, nil
}

// runtimeLayers: by default Envoy rejects regular expressions with a program of
// more than 100 instructions, which a route's path easily has. Contour's users
// have the same bound of 2^20 and the same warning from 1000 on.
func runtimeLayers() *bootstrapv3.LayeredRuntime {
	return &bootstrapv3.LayeredRuntime{Layers: []*bootstrapv3.RuntimeLayer{{
		Name: "holdfast",
		LayerSpecifier: &bootstrapv3.RuntimeLayer_StaticLayer{StaticLayer: &structpb.Struct{Fields: map[string]*structpb.Value{
			"re2.max_program_size.error_level": structpb.NewNumberValue(1 << 20),
			"re2.max_program_size.warn_level":  structpb.NewNumberValue(1000),
		}}},
	}}}
}

// dynamicResources: everything by one delta ADS stream. The timeouts of 0s make
// a fresh Envoy wait for us: with the default it is ready after 15 s, without
// listeners (seen with Envoy 1.40).
func dynamicResources() *bootstrapv3.Bootstrap_DynamicResources {
	wait := func() *corev3.ConfigSource {
		return &corev3.ConfigSource{
			ResourceApiVersion:    corev3.ApiVersion_V3,
			ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
			InitialFetchTimeout:   durationpb.New(0),
		}
	}
	return &bootstrapv3.Bootstrap_DynamicResources{
		LdsConfig: wait(),
		CdsConfig: wait(),
		AdsConfig: &corev3.ApiConfigSource{
			ApiType:                   corev3.ApiConfigSource_DELTA_GRPC,
			TransportApiVersion:       corev3.ApiVersion_V3,
			SetNodeOnFirstMessageOnly: true,
			GrpcServices: []*corev3.GrpcService{{
				TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
					ClusterName: xdsCluster,
					// After a long break Envoy would otherwise take up to 30 s to come back.
					RetryPolicy: &corev3.RetryPolicy{RetryBackOff: &corev3.BackoffStrategy{
						BaseInterval: durationpb.New(500 * time.Millisecond),
						MaxInterval:  durationpb.New(5 * time.Second),
					}},
				}},
			}},
		},
	}
}

// cluster is holdfast itself. Pings find a dead peer that never said goodbye.
func (b *envoyBootstrap) cluster() (*clusterv3.Cluster, error) {
	options, err := anypb.New(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
				ConnectionKeepalive: &corev3.KeepaliveSettings{Interval: durationpb.New(30 * time.Second), Timeout: durationpb.New(10 * time.Second)},
			}},
		}},
	})
	if err != nil {
		return nil, err
	}
	c := &clusterv3.Cluster{
		Name:                          xdsCluster,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS},
		ConnectTimeout:                durationpb.New(5 * time.Second),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: xdsCluster,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: b.xds.envoy()}},
			}}}},
		},
	}
	// Envoy's default would try nothing but IPv6 for a name that has both.
	c.DnsLookupFamily = clusterv3.Cluster_V4_PREFERRED
	if _, isIP := b.xds.ip(); isIP {
		c.DnsLookupFamily = clusterv3.Cluster_AUTO
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	}
	if b.tls != nil {
		c.TransportSocket, err = b.tls.transportSocket(b.xds)
	}
	return c, err
}

// overload bounds the connections; without a bound Envoy warns at each start
// that it may run out of file descriptors.
func (b *envoyBootstrap) overload() (*overloadv3.OverloadManager, error) {
	if b.maxConnections == 0 {
		return nil, nil
	}
	config, err := anypb.New(&downstreamv3.DownstreamConnectionsConfig{MaxActiveDownstreamConnections: int64(b.maxConnections)})
	if err != nil {
		return nil, err
	}
	return &overloadv3.OverloadManager{ResourceMonitors: []*overloadv3.ResourceMonitor{{
		Name:       "envoy.resource_monitors.global_downstream_max_connections",
		ConfigType: &overloadv3.ResourceMonitor_TypedConfig{TypedConfig: config},
	}}}, nil
}

func (a address) envoy() *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: a.host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.port)},
	}}}
}

func extension(name string, m proto.Message) (*corev3.TypedExtensionConfig, error) {
	config, err := anypb.New(m)
	return &corev3.TypedExtensionConfig{Name: name, TypedConfig: config}, err
}
