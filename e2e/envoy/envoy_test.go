package envoy

import (
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/proc"
)

func TestAsksARealEnvoy(t *testing.T) {
	binary := os.Getenv("HOLDFAST_TEST_ENVOY")
	if binary == "" {
		t.Skip("HOLDFAST_TEST_ENVOY is not set: no Envoy to ask (make e2e sets it)")
	}
	ports, err := proc.FreePorts(netip.MustParseAddr("127.0.0.1"), 1)
	if err != nil {
		t.Fatal(err)
	}
	g := proc.NewGroup(t.TempDir())
	defer g.Close()
	e, err := Start(g, Config{Binary: binary, Admin: ports[0], Folder: t.TempDir(), Bootstrap: fmt.Appendf(nil,
		`{"admin":{"address":{"socket_address":{"address":"127.0.0.1","port_value":%d}}},"static_resources":{"clusters":[{"name":"c"}]}}`, ports[0].Port())})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.WaitReady(t.Context(), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	stats, err := e.Stats(t.Context(), `^cluster_manager\.cluster_`)
	if err != nil || stats["cluster_manager.cluster_added"] != 1 {
		t.Errorf("%v, %v", stats, err)
	}
	if h, err := e.Holdings(t.Context()); err != nil || len(h[Clusters]) != 0 {
		t.Errorf("%v, %v: want no dynamic cluster", h, err)
	}
}
