package e2e

import (
	"fmt"
	"strings"
	"testing"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

// tooLarge is well formed, and more than RE2 allows a program to be.
var tooLarge = "/" + strings.Repeat(`\pL{1000}`, 60)

// What holdfast takes for good and Envoy does not: the host keeps what it had,
// the others go on, the status names the object in Envoy's words, and the repair
// is all it takes.
func TestRejectedByEnvoy(t *testing.T) {
	s := inSmall(t)
	good := s.hosts[30]
	bad := good
	bad.Objects = []fixture.Object{withProxy(good, func(p *contourv1.HTTPProxy) {
		p.Spec.Routes = append(p.Spec.Routes, contourv1.Route{
			Conditions: []contourv1.MatchCondition{{Regex: tooLarge}}, Services: p.Spec.Routes[0].Services,
		})
	})}
	traffic := s.background(t)
	answered(t, traffic, 50)
	before := s.settle(t).Sent()
	s.try(t, s.put(t.Context(), &bad))
	subject := fmt.Sprintf("HTTPProxy %s/%s", good.Namespace, good.Name)
	st, err := s.Holdfast.Await(t.Context(), "word of "+subject, patience, func(st *status) error {
		raw := string(st.Raw)
		if !strings.Contains(raw, good.Name) || !strings.Contains(raw, "pattern too large") {
			return fmt.Errorf("nacks %d, problems %+v", st.Sent().Nacks-before.Nacks, st.Problems)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	sibling := s.freshHost(false)
	s.try(t, s.put(t.Context(), &sibling))
	s.served(t, &sibling)
	if n := s.settle(t).Sent().Nacks - before.Nacks; n == 0 || n > 8 {
		t.Errorf("%d NACKs for one bad object", n)
	}
	if st != nil {
		t.Logf("%s", describe(st))
	}
	s.try(t, s.put(t.Context(), &good))
	s.settle(t)
	if st, err := s.Holdfast.Status(t.Context()); err != nil || strings.Contains(string(st.Raw), "pattern too large") {
		t.Errorf("still told after the repair (%v)", err)
	}
	unharmed(t, traffic)
	s.try(t, s.remove(t.Context(), &sibling))
}

// describe gives what the streams say is quarantined.
func describe(s *status) string {
	var out []string
	for _, stream := range s.Streams {
		for _, kind := range stream.Types {
			for _, q := range kind.Quarantined {
				out = append(out, kind.Type+": "+q.Message)
			}
		}
	}
	return strings.Join(out, "\n")
}
