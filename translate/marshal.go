package translate

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/holdfast-xds/holdfast/index"
)

var deterministic = proto.MarshalOptions{Deterministic: true}

// marshal serializes a message of ours. A message that can't be serialized (a
// string that is not UTF-8) is a fault of whoever let it in.
func marshal(m proto.Message) []byte {
	b, err := deterministic.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("translate: marshal %T: %v", m, err))
	}
	return b
}

func packed(m proto.Message) *anypb.Any {
	return &anypb.Any{TypeUrl: "type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName()), Value: marshal(m)}
}

// appendField appends an already serialized message as one element of a repeated
// field: the elements of a repeated field may be concatenated.
func appendField(b []byte, field protowire.Number, element []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendBytes(b, element)
}

// Decode gives a resource's message.
func Decode(r *index.Resource) (proto.Message, error) {
	var m proto.Message
	switch r.Type {
	case typeCluster:
		m = new(clusterv3.Cluster)
	case typeEndpoints:
		m = new(endpointv3.ClusterLoadAssignment)
	case typeListener:
		m = new(listenerv3.Listener)
	case typeScope:
		m = new(routev3.ScopedRouteConfiguration)
	case typeRoutes:
		m = new(routev3.RouteConfiguration)
	case typeSecret:
		m = new(tlsv3.Secret)
	default:
		return nil, fmt.Errorf("%s: unknown resource type %s", r.Name, r.Type)
	}
	if err := proto.Unmarshal(r.Body, m); err != nil {
		return nil, fmt.Errorf("%s: %w", r.ResourceKey, err)
	}
	return m, nil
}
