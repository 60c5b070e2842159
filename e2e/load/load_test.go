package load

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/backend"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

var anyPort = netip.MustParseAddrPort("127.0.0.1:0")

func TestCountsByOutcome(t *testing.T) {
	g := fixture.New(fixture.Options{Backends: []fixture.Backend{{Name: "x", Addrs: []netip.AddrPort{anyPort}}}})
	crt, key := g.Certificate("a.example", "b.example")
	pair, err := tls.X509KeyPair(crt, key)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := backend.Start("plain", anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	secure, err := backend.StartTLS("secure", pair, anyPort)
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(g.CA())
	r := Start(t.Context(), Config{
		HTTP: plain.Addrs()[0], HTTPS: secure.Addrs()[0], Roots: roots, Concurrency: 3, Requests: 600, FreshPercent: 50,
		Targets: []Target{
			{Host: "a.example", Path: "/", Backend: "plain"},
			{Host: "b.example", Path: "/", TLS: true, Backend: "secure"},
			{Host: "a.example", Path: "/wrong", Backend: "other"},
			{Host: "c.example", Path: "/", TLS: true, Backend: "secure"},
			{Host: "a.example", Path: "/", Headers: map[string]string{"X-Echo-Status": "503"}, Backend: "plain"},
		},
	}).Wait()
	if r.Requests != 600 || r.Outcomes["200"]+r.Failed != 600 || len(r.Failures) != 3*keptFailures {
		t.Errorf("%v", r)
	}
	for _, o := range []string{"200", "503", WrongBackend, NoHandshake} {
		if r.Outcomes[o] == 0 {
			t.Errorf("no %q in %v", o, r.Outcomes)
		}
	}
	if r.P50 <= 0 || r.P99 < r.P50 || r.Max < r.P99/2 {
		t.Errorf("latencies %v %v %v", r.P50, r.P99, r.Max)
	}
}

func TestOnceAsksEachTargetOnce(t *testing.T) {
	var asked sync.Map
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, again := asked.LoadOrStore(r.Host, true); again {
			t.Errorf("%s was asked twice", r.Host)
		}
	}))
	defer s.Close()
	c := Config{HTTP: netip.MustParseAddrPort(s.Listener.Addr().String()), Concurrency: 4, Once: true}
	for i := range 100 {
		c.Targets = append(c.Targets, Target{Host: fmt.Sprint("host-", i), Path: "/"})
	}
	if r := Start(t.Context(), c).Wait(); r.Requests != 100 || r.Failed != 0 {
		t.Errorf("%v", r)
	}
}

func TestABrokenConnectionIsAFailure(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }))
	at := netip.MustParseAddrPort(s.Listener.Addr().String())
	c := Config{HTTP: at, Targets: []Target{{Host: "a", Path: "/"}}, Requests: 5}
	r := Start(t.Context(), c).Wait()
	if r.Failed != 5 || r.Outcomes[Broken] != 5 || !strings.Contains(r.String(), "EOF") {
		t.Errorf("%v", r)
	}
	s.Close()
	if r := Start(t.Context(), c).Wait(); r.Outcomes[NoConnection] != 5 {
		t.Errorf("%v", r)
	}
}

func TestWatchKeepsTheSequence(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked <= 3 {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer s.Close()
	w := StartWatch(t.Context(), Config{HTTP: netip.MustParseAddrPort(s.Listener.Addr().String())}, Target{Host: "a", Path: "/"})
	for end := time.Now().Add(10 * time.Second); w.Now() != "200" && time.Now().Before(end); {
	}
	phases := w.Stop()
	if Outcomes(phases) != "404 200" || phases[0].Answers != 3 {
		t.Errorf("%v", phases)
	}
}
