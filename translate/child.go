package translate

import (
	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// child tells an HTTPProxy that is no root whether a root includes it.
func (x *Rules) child(name string, r *index.Reader) {
	ns, proxyName := qualified(name, "")
	o, p, presence := x.proxyNamed(r, ns, proxyName)
	if presence != index.Found || p.Spec.VirtualHost != nil {
		return
	}
	if reachable(r, ns, proxyName, map[string]bool{}) {
		return
	}
	r.ReliesOnAbsence(kinds.HTTPProxy)
	r.Problem(faultf("", orphaned, "Orphaned", "this HTTPProxy is not part of a delegation chain from a root HTTPProxy").on(o.ObjectKey, index.Warning))
}

// reachable walks up the includes to a root.
func reachable(r *index.Reader, ns, name string, visited map[string]bool) bool {
	if visited[ns+"/"+name] {
		return false
	}
	visited[ns+"/"+name] = true
	for _, o := range r.Range(kinds.HTTPProxy, lookupInclude(ns, name), index.NeedMonotone) {
		p := o.Body.(*contourv1.HTTPProxy)
		if p.Spec.VirtualHost != nil || reachable(r, p.Namespace, p.Name, visited) {
			return true
		}
	}
	return false
}
