package e2e

import (
	"crypto/tls"
	"net/netip"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/backend"
	"github.com/holdfast-xds/holdfast/e2e/scenario"
)

// The stories of scenarios/*.yaml, each about features by their ids.
func TestScenarios(t *testing.T) {
	needEnvoy(t)
	r := stage(t)
	all, err := scenario.Load("scenarios", r.Words())
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		t.Run(all[i].Name, func(t *testing.T) {
			if err := r.Run(t.Context(), &all[i]); err != nil {
				t.Errorf("%s %v: %v", all[i].About, all[i].Features, err)
			}
		})
	}
}

// stage starts a holdfast and an Envoy with nothing in them.
func stage(t *testing.T) *scenario.Runner {
	t.Helper()
	g, err := newRig("scenarios", netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Rig: g}
	if w.folder, err = g.Objects(); err != nil {
		t.Fatal(err)
	}
	if err := w.begin(t.Context(), "--source=dir:"+w.folder); err != nil {
		t.Fatal(err)
	}
	r := &scenario.Runner{
		Folder: w.folder, HTTP: g.HTTP, HTTPS: g.HTTPS, Generator: g.Generator,
		Backends: map[string]*backend.Backend{"elder": secureBackend(t, w)}, Within: 10 * time.Second,
	}
	for _, b := range g.Backends {
		r.Backends[b.Name] = b
	}
	return r
}

// secureBackend speaks TLS.
func secureBackend(t *testing.T, w *world) *backend.Backend {
	t.Helper()
	pair, err := tls.X509KeyPair(w.Generator.Certificate("elder.test"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := backend.StartTLS("elder", pair, netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}
