package client

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
)

// references are the names that a resource makes Envoy ask for.
type references struct{ keys []Key }

var none = &references{}

func (f *Fleet) parse(t Type, body []byte) (*references, error) {
	r := &references{}
	switch t {
	case Clusters:
		var c clusterv3.Cluster
		if err := proto.Unmarshal(body, &c); err != nil {
			return nil, err
		}
		if c.GetType() == clusterv3.Cluster_EDS {
			name := c.GetEdsClusterConfig().GetServiceName()
			if name == "" {
				name = c.GetName()
			}
			r.add(f.Key(Endpoints, name))
		}
	case Scopes:
		var s routev3.ScopedRouteConfiguration
		if err := proto.Unmarshal(body, &s); err != nil {
			return nil, err
		}
		r.add(f.Key(Routes, s.GetRouteConfigurationName()))
	case Listeners:
		var l listenerv3.Listener
		if err := proto.Unmarshal(body, &l); err != nil {
			return nil, err
		}
		return r, f.parseListener(r, &l)
	}
	return r, nil
}

func (r *references) add(k Key) { r.keys = append(r.keys, k) }

func (f *Fleet) parseListener(r *references, l *listenerv3.Listener) error {
	chains := append([]*listenerv3.FilterChain(nil), l.GetFilterChains()...)
	if d := l.GetDefaultFilterChain(); d != nil {
		chains = append(chains, d)
	}
	for _, c := range chains {
		for _, filter := range c.GetFilters() {
			var hcm hcmv3.HttpConnectionManager
			if !filter.GetTypedConfig().MessageIs(&hcm) {
				continue
			}
			if err := filter.GetTypedConfig().UnmarshalTo(&hcm); err != nil {
				return err
			}
			if name := hcm.GetRds().GetRouteConfigName(); name != "" {
				r.add(f.Key(Routes, name))
			}
		}
		if err := f.parseTLS(r, c.GetTransportSocket()); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) parseTLS(r *references, s *corev3.TransportSocket) error {
	var tls tlsv3.DownstreamTlsContext
	if s == nil || !s.GetTypedConfig().MessageIs(&tls) {
		return nil
	}
	if err := s.GetTypedConfig().UnmarshalTo(&tls); err != nil {
		return err
	}
	common := tls.GetCommonTlsContext()
	for _, x := range common.GetTlsCertificateSdsSecretConfigs() {
		r.add(f.Key(Secrets, x.GetName()))
	}
	for _, x := range []*tlsv3.SdsSecretConfig{common.GetValidationContextSdsSecretConfig(), common.GetCombinedValidationContext().GetValidationContextSdsSecretConfig()} {
		if x != nil {
			r.add(f.Key(Secrets, x.GetName()))
		}
	}
	return nil
}
