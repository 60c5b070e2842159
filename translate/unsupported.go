package translate

import (
	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
)

// What is asked for and not implemented comes in two kinds. Protection fails
// closed: what asked for it answers 503. An addition is left out, with a warning.

// unprotected gives what a root asks for to protect all of its host.
func unprotected(p *contourv1.HTTPProxy) []*fault {
	var out []*fault
	add := func(asked bool, field, kind string) {
		if asked {
			out = append(out, unsupported(field, kind))
		}
	}
	v := p.Spec.VirtualHost
	// Authorization without a service only opts out of a global one.
	add(v.Authorization != nil && v.Authorization.ExtensionServiceRef.Name != "", "spec.virtualhost.authorization", authError)
	add(len(v.JWTProviders) > 0, "spec.virtualhost.jwtProviders", jwtError)
	add(len(v.IPAllowFilterPolicy) > 0, "spec.virtualhost.ipAllowPolicy", ipFilterError)
	add(len(v.IPDenyFilterPolicy) > 0, "spec.virtualhost.ipDenyPolicy", ipFilterError)
	if v.TLS != nil {
		add(v.TLS.ClientValidation != nil, "spec.virtualhost.tls.clientValidation", tlsError)
		add(v.TLS.Passthrough, "spec.virtualhost.tls.passthrough", tlsError)
	}
	add(p.Spec.TCPProxy != nil, "spec.tcpproxy", tcpProxyError)
	return out
}

// unadornedHost gives what a root asks for beyond protection.
func unadornedHost(p *contourv1.HTTPProxy) []*fault {
	var out []*fault
	add := func(asked bool, field, kind string) {
		if asked {
			out = append(out, unsupported(field, kind))
		}
	}
	v := p.Spec.VirtualHost
	add(v.CORSPolicy != nil, "spec.virtualhost.corsPolicy", virtualHostError)
	add(v.RateLimitPolicy != nil, "spec.virtualhost.rateLimitPolicy", virtualHostError)
	add(v.TLS != nil && v.TLS.EnableFallbackCertificate, "spec.virtualhost.tls.enableFallbackCertificate", tlsError)
	return out
}

// unprotectedRoute gives what a route asks for to protect it. Fields are
// relative to the route.
func unprotectedRoute(r *contourv1.Route) []*fault {
	var out []*fault
	add := func(asked bool, field, kind string) {
		if asked {
			out = append(out, unsupported(field, kind))
		}
	}
	add(len(r.IPAllowFilterPolicy) > 0, "ipAllowPolicy", ipFilterError)
	add(len(r.IPDenyFilterPolicy) > 0, "ipDenyPolicy", ipFilterError)
	add(r.JWTVerificationPolicy != nil && r.JWTVerificationPolicy.Require != "", "jwtVerificationPolicy", jwtError)
	return out
}

// unadornedRoute gives what a route asks for beyond protection.
func unadornedRoute(r *contourv1.Route) []*fault {
	var out []*fault
	add := func(asked bool, field string) {
		if asked {
			out = append(out, unsupported(field, routeError))
		}
	}
	add(r.HealthCheckPolicy != nil, "healthCheckPolicy")
	add(r.LoadBalancerPolicy != nil, "loadBalancerPolicy")
	add(len(r.CookieRewritePolicies) > 0, "cookieRewritePolicies")
	add(r.RateLimitPolicy != nil, "rateLimitPolicy")
	add(r.InternalRedirectPolicy != nil, "internalRedirectPolicy")
	for i := range r.Services {
		s := &r.Services[i]
		add(len(s.CookieRewritePolicies) > 0, item("services", i)+".cookieRewritePolicies")
		add(s.SlowStartPolicy != nil, item("services", i)+".slowStartPolicy")
	}
	return out
}
