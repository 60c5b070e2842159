package e2e

import (
	"context"
	"sync"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/relay"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// smallHosts are enough for the removal guard, which counts from 100.
const smallHosts = 300

// small is a cluster world of few hosts, for what needs many changes: its
// holdfast reads through the gate, and its Envoy connects through a relay.
type small struct {
	*world
	relay *relay.Relay
	// ingresses are hosts that need no HTTPProxy.
	ingresses []fixture.Host
}

var smallWorld = sync.OnceValues(func() (*small, error) {
	w, err := newClusterWorld("small", smallHosts)
	if err != nil {
		return nil, err
	}
	s := &small{world: w}
	own := w.Holdfast.Config.XDS
	if s.relay, err = relay.Start(own); err != nil {
		return nil, err
	}
	closers = append(closers, s.relay.Close)
	ctx := context.Background()
	for i := range 3 {
		h := asIngress(w.hosts[3*i], "ingress-"+w.hosts[3*i].FQDN)
		if err := w.put(ctx, &h); err != nil {
			return nil, err
		}
		s.ingresses = append(s.ingresses, h)
	}
	w.targets = append(w.targets, rig.Targets(s.ingresses)...)
	if err := w.StartHoldfast(w.cluster.gated...); err != nil {
		return nil, err
	}
	w.Holdfast.Config.XDS = s.relay.Address() // for Envoy's bootstrap
	err = w.StartEnvoy(ctx)
	w.Holdfast.Config.XDS = own
	if err != nil {
		return nil, err
	}
	return s, w.Envoy.WaitReady(ctx, patience)
})

// inSmall gives the small world, settled.
func inSmall(t *testing.T) *small {
	t.Helper()
	needCluster(t)
	s, err := smallWorld()
	if err != nil {
		t.Fatal(err)
	}
	s.settle(t)
	return s
}

// asIngress gives a host of another name, by an Ingress, that shares the
// Service of the given one.
func asIngress(h fixture.Host, fqdn string) fixture.Host {
	port := networkingv1.ServiceBackendPort{Number: 80}
	in := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: fqdn},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: fqdn,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
				Path: "/", PathType: new(networkingv1.PathTypePrefix),
				Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: h.Name, Port: port}},
			}}}},
		}}},
	}
	return fixture.Host{Namespace: h.Namespace, Name: fqdn, FQDN: fqdn, Objects: []fixture.Object{in}, Probes: h.Probes[:1]}
}
