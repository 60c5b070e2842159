//go:build faults

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-xds/holdfast/e2e/envoy"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
	"github.com/holdfast-xds/holdfast/e2e/holdfast"
	"github.com/holdfast-xds/holdfast/e2e/load"
	"github.com/holdfast-xds/holdfast/e2e/proc"
	"github.com/holdfast-xds/holdfast/e2e/rig"
)

// watched are the kinds, with their plurals.
var watched = []struct{ kind, resource string }{
	{"HTTPProxy", "httpproxies"},
	{"TLSCertificateDelegation", "tlscertificatedelegations"},
	{"Ingress", "ingresses"},
	{"IngressClass", "ingressclasses"},
	{"Service", "services"},
	{"EndpointSlice", "endpointslices"},
	{"Secret", "secrets"},
	{"Namespace", "namespaces"},
}

// proxyCRD is what is deleted by accident.
const proxyCRD = "httpproxies.projectcontour.io"

// faultsOf gives all lines of the matrix, in their order.
func faultsOf() []misfit {
	var out []misfit
	for _, k := range watched {
		out = append(out, misfit{
			name: k.kind + " forbidden by RBAC at a restart, then allowed",
			run:  func(t *testing.T, l *line) { forbidden(t, l, k.kind, k.resource) },
		})
	}
	return append(out,
		misfit{name: "the API server killed in steady state", run: apiServerKilled},
		misfit{name: "the API server killed while holdfast starts", run: apiServerKilledAtStart},
		misfit{name: "etcd compacted while watches are away: 410", run: compacted},
		misfit{name: "LISTs cut in mid-page at a restart", run: cut},
		misfit{name: "watches dropped twice a second", run: dropped},
		misfit{name: "a slow API server: each request and each event 1 s late, at a restart", run: slow},
		misfit{name: "Envoy moves from the fresh replica to one that lags", run: lagging},
		misfit{name: "holdfast killed right behind changes of clusters, 10 times", run: killedBetween},
		misfit{name: "Envoy frozen (SIGSTOP)", run: frozen, timeout: 5 * time.Minute},
		misfit{name: "the HTTPProxy CRD deleted with its objects, then installed and filled again", run: crdDeleted, meant: provenLoss},
		misfit{name: "the same, and holdfast restarts meanwhile", run: crdDeletedAndRestart, meant: provenLoss},
		misfit{
			name: "the same, let go by `holdfast release`; then holdfast starts without the CRD, which comes later", run: crdReleased,
			targets: func(m *matrix) []load.Target { return rig.Targets(m.ingresses) },
			meant:   "the removal was released by hand; the load is on Ingress hosts, which are to stay",
		})
}

// provenLoss is why requests fail when a CRD goes.
const provenLoss = "the API server says of each object that it was deleted, one by one: the removal guard lets the first half of a type go, and does not count types of fewer than 100, here the 30 filter chains"

// shortly is how long the faults last that need no minute.
const shortly = 5 * time.Second

func forbidden(t *testing.T, l *line, kind, resource string) {
	l.try(t, l.cluster.AllowReading(t.Context(), resource))
	l.restart(t)
	l.hears(t, kind)
	l.canary(t)
	l.lasts(shortly)
	l.listen(t)
	l.try(t, l.cluster.AllowReading(t.Context()))
	l.over()
}

func apiServerKilled(t *testing.T, l *line) {
	l.try(t, l.cluster.APIServer.Kill())
	l.hears(t)
	l.lasts(l.outage)
	l.listen(t)
	l.try(t, l.cluster.StartAPIServer(t.Context()))
	l.over()
	l.canary(t)
}

func apiServerKilledAtStart(t *testing.T, l *line) {
	for _, k := range watched {
		l.cluster.gate.Delay(k.resource, 300*time.Millisecond)
	}
	before := l.cluster.gate.Reads("httpproxies")
	l.restart(t)
	l.try(t, proc.Until(t.Context(), "the first list", patience, func(context.Context) error {
		if l.cluster.gate.Reads("httpproxies") == before {
			return errors.New("not asked for")
		}
		return nil
	}))
	l.try(t, l.cluster.APIServer.Kill())
	l.hears(t)
	l.lasts(l.outage)
	l.listen(t)
	l.cluster.gate.PassAll()
	l.try(t, l.cluster.StartAPIServer(t.Context()))
	l.over()
	l.canary(t)
}

// compacted: with 429 the watches come back to where they were, and by then the
// API server has forgotten that revision.
func compacted(t *testing.T, l *line) {
	before := l.cluster.gate.Expired()
	for _, k := range watched {
		l.cluster.gate.Refuse(k.resource, http.StatusTooManyRequests)
		l.cluster.gate.EndWatches(k.resource)
	}
	l.canary(t)
	for i := range 20 {
		h := l.hosts[i]
		l.try(t, fixture.SetTimeout(&h, fmt.Sprintf("%ds", 40+i)))
		l.try(t, l.put(t.Context(), &h))
	}
	l.listen(t)
	l.try(t, l.cluster.Compact(t.Context()))
	l.try(t, l.cluster.APIServer.Kill())
	l.try(t, l.cluster.StartAPIServer(t.Context()))
	l.cluster.gate.PassAll()
	l.over()
	l.served(t, &l.canaries[0])
	n := l.cluster.gate.Expired() - before
	t.Logf("%d watches were answered 410", n)
	if n == 0 {
		t.Error("no watch was answered 410: the fault did not come about")
	}
}

func cut(t *testing.T, l *line) {
	for _, k := range watched {
		l.cluster.gate.CutAfter(k.resource, 2000)
	}
	l.restart(t)
	l.hears(t, "HTTPProxy", "Service", "EndpointSlice", "Secret")
	l.canary(t)
	l.lasts(shortly)
	l.listen(t)
	l.cluster.gate.PassAll()
	l.over()
}

func dropped(t *testing.T, l *line) {
	l.try(t, every(t.Context(), 500*time.Millisecond, 4*shortly, func(i int) error {
		for _, k := range watched {
			l.cluster.gate.DropWatches(k.resource)
		}
		h := l.hosts[i%len(l.hosts)]
		return errors.Join(fixture.SetTimeout(&h, fmt.Sprintf("%ds", 30+i)), l.put(t.Context(), &h))
	}))
	l.listen(t)
	l.canary(t)
	l.over()
}

func slow(t *testing.T, l *line) {
	for _, k := range watched {
		l.cluster.gate.Delay(k.resource, time.Second)
	}
	l.restart(t)
	l.hears(t)
	l.listen(t)
	l.canary(t)
	l.lasts(2 * shortly)
	l.cluster.gate.PassAll()
	l.over()
}

// lagging: the second replica sees nothing of what was written last, and Envoy
// comes to it with all of that.
func lagging(t *testing.T, l *line) {
	other := l.replica(t)
	first := l.Holdfast.Config.XDS
	defer func() {
		l.relay.Move(first)
		l.try(t, other.Kill())
	}()
	if _, err := other.Await(t.Context(), "lists of the second", patience, func(s *status) error { return s.Lists() }); err != nil {
		t.Fatal(err)
	}
	for _, k := range watched {
		l.second.Stall(k.resource)
	}
	h := l.canary(t)
	l.served(t, h)
	l.settle(t)
	watch := l.watch(t, h)
	until(t, watch, "200")
	l.relay.Move(other.Config.XDS)
	l.server = other
	if _, err := other.Await(t.Context(), "Envoy at the second", patience, func(s *status) error {
		if s.Stream(rig.Node) == nil {
			return errors.New("not there")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	l.lasts(2 * shortly)
	l.hears(t)
	l.listen(t)
	l.second.PassAll()
	l.over()
	l.recover(t)
	l.relay.Move(first)
	l.server = l.Holdfast
	l.settle(t)
	if phases := watch.Stop(); load.Outcomes(phases) != "200" {
		t.Errorf("the host that the second did not know answered %v", phases)
	}
	l.ended = time.Now().Add(-l.recovered) // that of the second is what counts
}

func (l *line) replica(t *testing.T) *holdfast.Server {
	t.Helper()
	ports, err := proc.FreePorts(netip.MustParseAddr("127.0.0.1"), 2)
	l.try(t, err)
	kubeconfig, err := l.cluster.Kubeconfig("second", l.second.Address())
	l.try(t, err)
	c := l.Holdfast.Config
	c.Name, c.XDS, c.Admin, c.Source = "holdfast-2", ports[0], ports[1], []string{"--source=kube", "--kubeconfig=" + kubeconfig}
	s := holdfast.Prepare(l.Processes, c)
	l.try(t, s.Start())
	return s
}

// killedBetween: a cluster change goes out in two parts, CDS and EDS; killed some
// milliseconds behind the write, holdfast is at any point of it.
func killedBetween(t *testing.T, l *line) {
	for round := range 10 {
		for i := range 5 {
			s := part[*corev1.Service](&l.hosts[10*i]).DeepCopy()
			if round%2 == 0 {
				s.Annotations = map[string]string{"projectcontour.io/upstream-protocol.h2c": "80"}
			}
			l.try(t, l.cluster.Apply(t.Context(), s))
		}
		<-time.After(time.Duration(5*round) * time.Millisecond)
		l.restart(t)
		if _, err := l.Holdfast.Await(t.Context(), "lists", patience, func(s *status) error { return errors.Join(s.Lists(), s.Quiet(rig.Node)) }); err != nil {
			t.Error(err)
		}
	}
	l.listen(t)
	l.canary(t)
	l.over()
	l.replaces = true
}

// frozen: nobody answers while Envoy is stopped; the requests wait.
func frozen(t *testing.T, l *line) {
	l.Envoy.Freeze()
	defer l.Envoy.Thaw()
	h := l.hosts[5]
	l.try(t, errors.Join(fixture.SetTimeout(&h, "33s"), l.put(t.Context(), &h)))
	l.canary(t)
	l.lasts(l.outage)
	l.listen(t)
	l.Envoy.Thaw()
	l.over()
}

func crdDeleted(t *testing.T, l *line) { l.withoutCRD(t, func() {}) }

func crdDeletedAndRestart(t *testing.T, l *line) {
	l.withoutCRD(t, func() {
		l.restart(t)
		l.hears(t, "HTTPProxy")
		l.lasts(2 * shortly)
	})
}

// withoutCRD deletes the CRD, waits until the guard speaks, does something
// meanwhile, and brings all back.
func (l *line) withoutCRD(t *testing.T, meanwhile func()) {
	t.Helper()
	l.try(t, l.cluster.RemoveCRD(t.Context(), proxyCRD))
	l.hears(t)
	l.lasts(2 * shortly)
	l.listen(t)
	l.halfStays(t)
	meanwhile()
	l.listen(t)
	l.halfStays(t)
	l.bringBack(t)
	l.over()
}

// halfStays: the guard's promise, for clusters and for scopes.
func (l *line) halfStays(t *testing.T) {
	t.Helper()
	h, err := l.Envoy.Holdings(t.Context())
	l.try(t, err)
	for _, k := range []envoy.Kind{envoy.Clusters, envoy.Scopes} {
		if n := len(h[k]); 2*n < len(l.hosts) {
			t.Errorf("Envoy is left with %d %s, less than half", n, k)
		}
	}
}

func (l *line) bringBack(t *testing.T) {
	t.Helper()
	l.try(t, l.cluster.InstallCRDs(t.Context()))
	var proxies []fixture.Object
	for i := range l.hosts {
		for _, o := range l.hosts[i].Objects {
			if p, ok := o.(*contourv1.HTTPProxy); ok {
				proxies = append(proxies, p)
			}
		}
	}
	l.try(t, l.cluster.Load(t.Context(), proxies))
}

func crdReleased(t *testing.T, l *line) {
	l.try(t, l.cluster.RemoveCRD(t.Context(), proxyCRD))
	if _, err := l.Holdfast.Await(t.Context(), "the guard", patience, func(s *status) error {
		if !strings.Contains(strings.Join(wordsOf(s), " "), "guard") {
			return fmt.Errorf("only %v", wordsOf(s))
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	out, err := exec.CommandContext(t.Context(), parts.holdfast, "release", "--admin-address="+l.Holdfast.Config.Admin.String()).CombinedOutput()
	l.says = append(l.says, "release: "+strings.TrimSpace(string(out)))
	l.try(t, err)
	l.try(t, proc.Until(t.Context(), "all removed", patience, func(ctx context.Context) error {
		h, err := l.Envoy.Holdings(ctx)
		if err == nil && len(h[envoy.Clusters]) > 3*len(l.ingresses) {
			err = fmt.Errorf("%v", h)
		}
		return err
	}))
	l.restart(t)
	l.hears(t, "HTTPProxy")
	in := asIngress(l.hosts[2], "late-"+l.hosts[2].FQDN)
	l.try(t, l.put(t.Context(), &in))
	l.served(t, &in)
	l.try(t, l.remove(t.Context(), &in))
	l.listen(t)
	l.bringBack(t)
	l.over()
	for i := range 20 {
		l.served(t, &l.hosts[i])
	}
}
