package translate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// Annotations of Ingress.
const (
	annotationForceSSL       = "ingress.kubernetes.io/force-ssl-redirect"
	annotationAllowHTTP      = "kubernetes.io/ingress.allow-http"
	annotationNumRetries     = "projectcontour.io/num-retries"
	annotationPerTryTimeout  = "projectcontour.io/per-try-timeout"
	annotationResponse       = "projectcontour.io/response-timeout"
	annotationRequest        = "projectcontour.io/request-timeout" // the old name of the former
	annotationRetryOn        = "projectcontour.io/retry-on"
	annotationTLSMinimum     = "projectcontour.io/tls-minimum-protocol-version"
	annotationTLSMaximum     = "projectcontour.io/tls-maximum-protocol-version"
	annotationTLSCertificate = "projectcontour.io/tls-cert-namespace"
	annotationWebsockets     = "projectcontour.io/websocket-routes"
)

func annotationField(name string) string { return "metadata.annotations[" + name + "]" }

func annotationFault(name string, err error) *fault {
	return faultf(annotationField(name), "", "AnnotationNotValid", "annotation %s: %s", name, err)
}

// ingressesOf gives the Ingresses that name a host, the oldest last: of two rules
// with the same match the later one stays.
func ingressesOf(r *index.Reader, host string) []*index.Object {
	found := slices.Clone(r.Range(kinds.Ingress, lookupHost(host), index.NeedMonotone))
	slices.SortStableFunc(found, func(a, b *index.Object) int {
		x, y := a.Body.(*networkingv1.Ingress), b.Body.(*networkingv1.Ingress)
		return cmp.Or(
			y.CreationTimestamp.Compare(x.CreationTimestamp.Time),
			cmp.Compare(y.Namespace, x.Namespace),
			cmp.Compare(y.Name, x.Name),
		)
	})
	return found
}

func (h *host) addIngresses() {
	list := ingressesOf(h.r, h.fqdn)
	secure := slices.ContainsFunc(list, func(o *index.Object) bool { return asksTLS(o.Body.(*networkingv1.Ingress), h.fqdn) })
	h.secure = h.secure || secure
	for _, o := range list {
		h.addSource(o.ObjectKey)
		h.addIngress(ingressRules{host: h, object: o, ingress: o.Body.(*networkingv1.Ingress), secure: secure})
	}
}

// asksTLS: the default host has no name that a certificate could be for.
func asksTLS(ing *networkingv1.Ingress, host string) bool {
	return host != anyHost && slices.ContainsFunc(ing.Spec.TLS, func(t networkingv1.IngressTLS) bool { return namesHost(t.Hosts, host) })
}

func namesHost(hosts []string, host string) bool {
	return slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

func (h *host) addIngress(g ingressRules) {
	if !validHost(h.fqdn) && h.fqdn != anyHost {
		h.problem(g.object.ObjectKey, index.Error, faultf("spec.rules", "", "HostNotValid", "host %q is not a DNS name", h.fqdn))
		return
	}
	g.readPolicies()
	if b := g.ingress.Spec.DefaultBackend; b != nil && h.fqdn == anyHost {
		g.add("spec.defaultBackend", &networkingv1.HTTPIngressPath{Backend: *b})
	}
	for i := range g.ingress.Spec.Rules {
		rule := &g.ingress.Spec.Rules[i]
		if rule.HTTP == nil || ruleHost(rule) != h.fqdn {
			continue
		}
		for j := range rule.HTTP.Paths {
			g.add(item(item("spec.rules", i)+".http.paths", j), &rule.HTTP.Paths[j])
		}
	}
}

// ingressRules translates the rules that one Ingress has for one host.
type ingressRules struct {
	*host
	object     *index.Object
	ingress    *networkingv1.Ingress
	secure     bool
	policies   policies
	websockets map[string]bool // paths
}

func (g *ingressRules) readPolicies() {
	warn := func(f *fault) {
		if f != nil {
			g.problem(g.object.ObjectKey, index.Warning, f)
		}
	}
	g.policies.idleConnection = defaultTimeout
	var f *fault
	g.policies.retry, f = ingressRetryPolicy(g.ingress)
	warn(f)
	a := g.ingress.Annotations
	name := annotationResponse
	if a[name] == "" {
		name = annotationRequest
	}
	timeout, err := parseTimeout(a[name])
	if err != nil {
		warn(annotationFault(name, err))
	}
	g.policies.timeout = timeout
	g.websockets = map[string]bool{}
	for p := range strings.SplitSeq(a[annotationWebsockets], ",") {
		g.websockets[strings.TrimSpace(p)] = true
	}
}

// add adds one path. One that can't be served is left out, and that alone.
func (g *ingressRules) add(field string, p *networkingv1.HTTPIngressPath) {
	path := orDefault(p.Path, "/")
	m, err := pathMatch(path, p.PathType)
	if err != nil {
		g.leaveOut(field+".path", "PathNotValid", err)
		return
	}
	svc, err := g.backend(&p.Backend)
	if err != nil {
		g.leaveOut(field+".backend", "ServiceUnresolvedReference", err)
		return
	}
	policies := g.policies
	policies.websocket = g.websockets[path]
	targets := []target{{upstream: upstreamOf(svc, nil, defaultTimeout)}}
	u := g.rule(g.object.ObjectKey, field, m, forward(&policies, targets))
	u.upstream = upstreams(targets)
	u.upgrade = g.ingress.Annotations[annotationForceSSL] == "true"
	u.plain = u.upgrade || g.ingress.Annotations[annotationAllowHTTP] != "false"
	u.secure = g.secure
	if f := checkRoute(&u); f != nil {
		g.leaveOut(field, "RouteNotValid", errors.New(f.message))
		return
	}
	g.routes = append(g.routes, u)
}

func (g *ingressRules) leaveOut(field, reason string, err error) {
	g.problem(g.object.ObjectKey, index.Error, faultf(field, "", reason, "%s", err))
}

// pathMatch: a path without a definite type is a regular expression if it looks
// like one, else a plain prefix.
func pathMatch(path string, kind *networkingv1.PathType) (match, error) {
	if path[0] != '/' && !strings.HasPrefix(path, "^/") {
		return match{}, fmt.Errorf("path %q does not begin with /", path)
	}
	of := networkingv1.PathTypeImplementationSpecific
	if kind != nil {
		of = *kind
	}
	switch {
	case of == networkingv1.PathTypeExact:
		return newMatch(pathExact, path, nil, nil), nil
	case of == networkingv1.PathTypePrefix:
		if path = strings.TrimRight(path, "/"); path != "" {
			return newMatch(pathSegments, path, nil, nil), nil
		}
		return newMatch(pathPrefix, "/", nil, nil), nil
	case strings.ContainsAny(path, "^+*[]%"):
		if err := checkRegex(path); err != nil {
			return match{}, fmt.Errorf("path %q: %w", path, err)
		}
		return newMatch(pathRegex, path, nil, nil), nil
	default:
		return newMatch(pathPrefix, path, nil, nil), nil
	}
}

func (g *ingressRules) backend(b *networkingv1.IngressBackend) (service, error) {
	if b.Service == nil {
		return service{}, errors.New("backend does not refer to a Service; resource backends are not supported")
	}
	port := portRef{number: b.Service.Port.Number}
	if b.Service.Port.Name != "" {
		port = portRef{name: b.Service.Port.Name}
	}
	return lookUp(g.r, g.ingress.Namespace, b.Service.Name, port)
}
