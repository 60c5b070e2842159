package translate

import (
	"errors"
	"slices"
	"strconv"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/index"
)

func badGateway() *routev3.Route { return &routev3.Route{Action: answer(502)} }

// route translates one route of an HTTPProxy. The fields of faults are relative
// to the route.
func (t *tree) route(n *node, i int) (rule, *fault) {
	spec := &n.proxy.Spec.Routes[i]
	if err := oneAction(spec); err != nil {
		return rule{}, faultf("", routeError, "RouteActionCountNotValid", "%s", err)
	}
	m, f := routeMatch(n, spec)
	if f != nil {
		return rule{}, f
	}
	p, f := routePolicies(n.proxy, spec)
	if f != nil {
		return rule{}, f
	}
	rewrite, f := prefixRewrite(&m, spec.GetPrefixReplacements())
	if f != nil {
		return rule{}, f
	}
	t.tellUnsupported(n, i, spec)
	route, targets, f := t.action(n, i, spec, p)
	if f != nil {
		return rule{}, f
	}
	u := t.rule(n.key(), item("spec.routes", i), m, route)
	u.rewrite, u.upstream = rewrite, upstreams(targets)
	u.plain, u.secure = true, t.tls
	u.upgrade = t.tls && !spec.PermitInsecure
	if f := checkRoute(&u); f != nil {
		return rule{}, f
	}
	return u, nil
}

// routeMatch joins the route's conditions with those of the includes above it.
func routeMatch(n *node, spec *contourv1.Route) (match, *fault) {
	const field = "conditions"
	if err := checkPaths(spec.Conditions); err != nil {
		return match{}, faultf(field, routeError, "PathMatchConditionsNotValid", "route: %s", err)
	}
	conds := slices.Concat(n.conds, spec.Conditions)
	if err := checkHeaders(conds); err != nil {
		return match{}, faultf(field, routeError, "HeaderMatchConditionsNotValid", "%s", err)
	}
	if err := checkQueries(conds); err != nil {
		return match{}, faultf(field, routeError, "QueryParameterMatchConditionsNotValid", "%s", err)
	}
	m, err := merge(conds)
	if err != nil {
		return match{}, faultf(field, routeError, "PathMatchConditionsNotValid", "route: %s", err)
	}
	return m, nil
}

func (t *tree) tellUnsupported(n *node, i int, spec *contourv1.Route) {
	tell := func(s index.Severity, list []*fault) {
		for _, f := range list {
			t.problem(n.key(), s, unsupported(item("spec.routes", i)+"."+f.field, f.kind))
		}
	}
	tell(index.Error, unprotectedRoute(spec))
	tell(index.Warning, unadornedRoute(spec))
}

// action makes what the route does, and the targets that it uses.
func (t *tree) action(n *node, i int, spec *contourv1.Route, p *policies) (*routev3.Route, []target, *fault) {
	if len(unprotectedRoute(spec)) > 0 {
		return refuse(), nil, nil
	}
	switch {
	case spec.RequestRedirectPolicy != nil:
		a, err := redirect(spec.RequestRedirectPolicy)
		if err != nil {
			return nil, nil, faultf("requestRedirectPolicy", routeError, "RequestRedirectPolicy", "route.requestRedirectPolicy is invalid: %s", err)
		}
		return &routev3.Route{Action: a}, nil, nil
	case spec.DirectResponsePolicy != nil:
		a, err := directResponse(spec.DirectResponsePolicy)
		if err != nil {
			return nil, nil, faultf("directResponsePolicy", routeError, "DirectResponsePolicy", "route.directResponsePolicy is invalid: %s", err)
		}
		return &routev3.Route{Action: a}, nil, nil
	}
	targets, open, f := t.targets(n, i, spec, p)
	if f != nil {
		return nil, nil, f
	}
	if !open {
		return refuse(), nil, nil
	}
	return forward(p, targets), targets, nil
}

// oneAction: exactly one of services, redirect and direct response.
func oneAction(spec *contourv1.Route) error {
	n := 0
	for _, set := range []bool{len(spec.Services) > 0, spec.RequestRedirectPolicy != nil, spec.DirectResponsePolicy != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return errors.New("must set exactly one of route.services or route.requestRedirectPolicy or route.directResponsePolicy")
	}
	return nil
}

func routePolicies(p *contourv1.HTTPProxy, spec *contourv1.Route) (*policies, *fault) {
	out := &policies{retry: retryPolicy(spec.RetryPolicy), websocket: spec.EnableWebsockets, idleConnection: defaultTimeout}
	variables := map[string]string{"CONTOUR_NAMESPACE": p.Namespace}
	var err error
	if out.request, err = readHeaders(spec.RequestHeadersPolicy, request, variables); err != nil {
		return nil, faultf("requestHeadersPolicy", routeError, "RequestHeadersPolicyInvalid", "%s on request headers", err)
	}
	if out.response, err = readHeaders(spec.ResponseHeadersPolicy, response, variables); err != nil {
		return nil, faultf("responseHeadersPolicy", routeError, "ResponseHeaderPolicyInvalid", "%s on response headers", err)
	}
	if err := out.readTimeouts(spec.TimeoutPolicy); err != nil {
		return nil, faultf("timeoutPolicy", routeError, "TimeoutPolicyNotValid", "route.timeoutPolicy failed to parse: %s", err)
	}
	return out, nil
}

func (p *policies) readTimeouts(t *contourv1.TimeoutPolicy) error {
	if t == nil {
		return nil
	}
	var err error
	if p.timeout, err = parseTimeout(t.Response); err != nil {
		return errors.New("error parsing response timeout: " + err.Error())
	}
	if p.idle, err = parseTimeout(t.Idle); err != nil {
		return errors.New("error parsing idle timeout: " + err.Error())
	}
	d, err := parseTimeout(t.IdleConnection)
	if err != nil {
		return errors.New("error parsing idle connection timeout: " + err.Error())
	}
	if d != nil {
		p.idleConnection = max(d.AsDuration(), 0)
	}
	return nil
}

// checkRoute asks Envoy's own validation rules, so that no one route makes Envoy
// reject a host.
func checkRoute(u *rule) *fault {
	u.finish()
	if err := u.route.ValidateAll(); err != nil {
		return faultf("", routeError, "RouteNotValid", "%s", err)
	}
	return nil
}

// targets resolves the route's services. open is false when one of them asks for
// protection that is not implemented.
func (t *tree) targets(n *node, i int, spec *contourv1.Route, p *policies) (out []target, open bool, f *fault) {
	if f := checkServices(spec.Services); f != nil {
		return nil, false, f
	}
	open = true
	for j := range spec.Services {
		s := &spec.Services[j]
		field := item("services", j)
		svc, err := lookUp(t.r, n.proxy.Namespace, s.Name, portRef{number: int32(s.Port)})
		if err != nil {
			t.invalid(n, faultf(item("spec.routes", i)+"."+field, serviceError, "ServiceUnresolvedReference", "Spec.Routes unresolved service reference: %s", err))
			continue
		}
		x, f := t.target(n, field, s, svc, p)
		if f != nil {
			return nil, false, f
		}
		if s.UpstreamValidation != nil && speaksTLS(x.upstream.protocol) {
			t.invalid(n, unsupported(item("spec.routes", i)+"."+field+".validation", serviceError))
			open = false
		}
		out = append(out, x)
	}
	return out, open, nil
}

func checkServices(list []contourv1.Service) *fault {
	var weights []int64
	mirrors := 0
	for j := range list {
		s := &list[j]
		field := item("services", j)
		if s.Port < 1 || s.Port > 65535 {
			return faultf(field+".port", serviceError, "ServicePortInvalid", "service %q: port must be in the range 1-65535", s.Name)
		}
		if s.Protocol != nil && *s.Protocol != protocolTLS && *s.Protocol != protocolH2 && *s.Protocol != protocolH2C {
			return faultf(field+".protocol", serviceError, "UnsupportedProtocol", "unsupported protocol: %s", *s.Protocol)
		}
		weights = append(weights, s.Weight)
		if s.Mirror {
			mirrors++
		}
	}
	if mirrors > 1 {
		return faultf("services", serviceError, "OnlyOneMirror", "only one service per route may be nominated as mirror")
	}
	if err := checkWeights(weights); err != nil {
		return faultf("services", serviceError, "WeightInvalid", "%s", err)
	}
	return nil
}

func (t *tree) target(n *node, field string, s *contourv1.Service, svc service, p *policies) (target, *fault) {
	out := target{weight: uint32(s.Weight), mirroring: s.Mirror}
	variables := map[string]string{
		"CONTOUR_NAMESPACE":    n.proxy.Namespace,
		"CONTOUR_SERVICE_NAME": s.Name,
		"CONTOUR_SERVICE_PORT": strconv.Itoa(s.Port),
	}
	var err error
	if out.request, err = readHeaders(s.RequestHeadersPolicy, request, variables); err != nil {
		return out, faultf(field+".requestHeadersPolicy", serviceError, "RequestHeadersPolicyInvalid", "%s on request headers", err)
	}
	if out.request.hostHeader != "" {
		return out, faultf(field+".requestHeadersPolicy", serviceError, "RequestHeadersPolicyInvalid", "rewriting %q header with a dynamic value is not supported on services on request headers", "Host")
	}
	if out.response, err = readHeaders(s.ResponseHeadersPolicy, response, variables); err != nil {
		return out, faultf(field+".responseHeadersPolicy", serviceError, "ResponseHeadersPolicyInvalid", "%s on response headers", err)
	}
	out.upstream = upstreamOf(svc, s.Protocol, p.idleConnection)
	if speaksTLS(out.upstream.protocol) {
		out.upstream.sni = orDefault(out.request.host, p.request.host)
	}
	return out, nil
}

func upstreamOf(svc service, protocol *string, idle time.Duration) upstream {
	u := upstream{namespace: svc.namespace, service: svc.name, port: svc.port, protocol: svc.protocol, idleConnection: idle}
	if protocol != nil {
		u.protocol = *protocol
	}
	return u
}
