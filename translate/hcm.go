package translate

import (
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Where Envoy gets its configuration: from the one ADS stream. patientSource is
// for what the server always answers: without it Envoy would be ready, and say
// 404, after 15 s. For endpoints the 15 s stay: they can be withheld. So can a Secret
// that is broken, while another Envoy has it still; a listener that names it holds up
// a fresh Envoy as a whole, so the wait for secrets is shorter. It is not much
// shorter, since thousands of them may have to come on a busy machine.
var (
	adsSource = &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
	patientSource = &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		InitialFetchTimeout:   durationpb.New(0),
	}
	secretSource = &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		InitialFetchTimeout:   durationpb.New(10 * time.Second),
	}
)

// routing sets how a connection manager finds its routes.
type routing func(*hcmv3.HttpConnectionManager)

func byRDS(name string) routing {
	return func(m *hcmv3.HttpConnectionManager) {
		m.RouteSpecifier = &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: name, ConfigSource: patientSource}}
	}
}

// byScope finds a RouteConfiguration by a key, which is a format of Envoy's: of the
// request's host, or on the TLS listener of the server name. Envoy takes the key from
// a header, which the early mutation sets before anything else; what the client sent
// in it is overwritten, and routes remove it. The colon cuts the port off. The
// fallback filters (below) are for hosts without a scope.
func byScope(key string) routing {
	return func(m *hcmv3.HttpConnectionManager) { scoped(m, key) }
}

func scoped(m *hcmv3.HttpConnectionManager, key string) {
	setScope := &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: overwrite(headerScope, key)}}
	m.EarlyHeaderMutationExtensions = []*corev3.TypedExtensionConfig{{
		Name:        "envoy.http.early_header_mutation.header_mutation",
		TypedConfig: packed(&earlyv3.HeaderMutation{Mutations: []*mutationv3.HeaderMutation{setScope}}),
	}}
	m.RouteSpecifier = &hcmv3.HttpConnectionManager_ScopedRoutes{ScopedRoutes: &hcmv3.ScopedRoutes{
		Name: "hosts",
		ScopeKeyBuilder: &hcmv3.ScopedRoutes_ScopeKeyBuilder{Fragments: []*hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder{{
			Type: &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_{HeaderValueExtractor: scopeExtractor},
		}}},
		RdsConfigSource: patientSource,
		ConfigSpecifier: &hcmv3.ScopedRoutes_ScopedRds{ScopedRds: &hcmv3.ScopedRds{ScopedRdsConfigSource: patientSource}},
	}}
}

const (
	scopeOfHost       = planeHTTP + "%REQ(:AUTHORITY)%"
	scopeOfServerName = planeHTTPS + "%REQUESTED_SERVER_NAME%"
)

var scopeExtractor = &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor{
	Name:             headerScope,
	ElementSeparator: ":",
	ExtractType:      &hcmv3.ScopedRoutes_ScopeKeyBuilder_FragmentBuilder_HeaderValueExtractor_Index{Index: 0},
}

// fallbackScript looks again when no scope was found: for the lower-case form of
// the host, then among the wildcard hosts. clearRouteCache alone computes nothing;
// of what a script can call only metadata() asks for the route, and once.
// On exact hits the filter is not in the chain at all: their RouteConfigurations
// disable it.
const fallbackScript = `
function envoy_on_request(h)
  local info, headers = h:streamInfo(), h:headers()
  if info:routeName() ~= "" then return end
  local host = headers:get(":authority")
  if host ~= nil then
    local lower = host:lower()
    if lower ~= host then
      headers:replace("` + headerScope + `", "` + planeHTTP + `" .. lower)
      h:clearRouteCache()
      h:metadata()
      if info:routeName() ~= "" then return end
    end
  end
  headers:replace("` + headerScope + `", "` + nameFallback + `")
  h:clearRouteCache()
end
`

// misdirectedScript is for the chains of wildcard names, which cover more than
// the one name that the connection was made for.
const misdirectedScript = `
function envoy_on_request(h)
  local host = h:headers():get(":authority")
  if host == nil then return end
  host = host:lower():gsub(":%d+$", "")
  if host ~= h:streamInfo():requestedServerName():lower() then
    h:respond({[":status"] = "421"}, "")
  end
end
`

// goneScript is for a connection whose server name has no scope any more. The host
// is gone, or a wildcard host has taken its place: a new connection finds out.
const goneScript = `
function envoy_on_request(h)
  if h:streamInfo():routeName() == "" then h:respond({[":status"] = "421"}, "") end
end
`

func luaFilter(name, script string) *hcmv3.HttpFilter {
	return httpFilter(name, packed(&luav3.Lua{
		DefaultSourceCode: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: script}},
	}))
}

func httpFilter(name string, config *anypb.Any) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}}
}

func router() *hcmv3.HttpFilter {
	return httpFilter("envoy.filters.http.router", packed(&routerv3.Router{}))
}

// connectionManager makes the HTTP filter of a listener, with the defaults that
// Contour's users have.
func connectionManager(r routing, stats string, filters []*hcmv3.HttpFilter) *listenerv3.Filter {
	m := &hcmv3.HttpConnectionManager{
		StatPrefix:                stats,
		HttpFilters:               filters,
		HttpProtocolOptions:       &corev3.Http1ProtocolOptions{AcceptHttp_10: true, AllowChunkedLength: true},
		UseRemoteAddress:          wrapperspb.Bool(true),
		NormalizePath:             wrapperspb.Bool(true),
		MergeSlashes:              true,
		PreserveExternalRequestId: true,
	}
	r(m)
	if m.GetScopedRoutes() != nil {
		// Envoy decides on an upgrade when it sets up the filters, which is before
		// the fallback filter finds a wildcard host's route. See websocketOff.
		m.UpgradeConfigs = []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}}
	}
	return &listenerv3.Filter{
		Name:       "envoy.filters.network.http_connection_manager",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(m)},
	}
}
