package suite

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"

	contourv1 "github.com/projectcontour/contour/apis/projectcontour/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/holdfast-xds/holdfast/benchmarks/workload"
	"github.com/holdfast-xds/holdfast/e2e/backend"
	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

// sight asks a proxy for one host until an answer shows an edit.
type sight struct {
	client *http.Client
	url    string
	host   string
	seen   func(*http.Response, *backend.Echo) bool
}

// sight gives how to see an edit; nil for one that no answer shows.
func (x *envoyRig) sight(e workload.Edit, h *fixture.Host, changes []workload.Change) (*sight, error) {
	s := &sight{url: "http://" + x.http.String() + "/", host: h.FQDN, client: &http.Client{Transport: &http.Transport{}}}
	if h.TLS {
		s.url = "https://" + h.FQDN + "/"
		s.client.Transport = x.secure(h.FQDN)
	}
	switch e {
	case workload.Route:
		value := changes[0].Object.(*contourv1.HTTPProxy).Spec.Routes[0].RequestHeadersPolicy.Set[0].Value
		s.seen = func(_ *http.Response, echo *backend.Echo) bool { return echo.Headers.Get("X-Edit") == value }
	case workload.Endpoint:
		name, err := x.backendOf(changes[0].Object.(*discoveryv1.EndpointSlice))
		if err != nil {
			return nil, err
		}
		s.seen = func(_ *http.Response, echo *backend.Echo) bool { return echo.Backend == name }
	case workload.NewHost, workload.TLSHost:
		s.seen = func(r *http.Response, _ *backend.Echo) bool { return r.StatusCode == http.StatusOK }
	case workload.DeletedHost:
		s.seen = func(r *http.Response, _ *backend.Echo) bool { return r.StatusCode == http.StatusNotFound }
	case workload.Certificate:
		names := x.work.CertificateNames(changes)
		s.seen = func(r *http.Response, _ *backend.Echo) bool {
			return r.TLS != nil && fmt.Sprint(r.TLS.PeerCertificates[0].DNSNames) == fmt.Sprint(names)
		}
	default:
		return nil, nil //nolint:nilnil // said above
	}
	return s, nil
}

// secure opens a connection for each request, so that each sees the certificate.
func (x *envoyRig) secure(name string) *http.Transport {
	return &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: x.roots, ServerName: name, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", x.https.String())
		},
	}
}

// backendOf gives the name of the backend that a slice points at.
func (x *envoyRig) backendOf(s *discoveryv1.EndpointSlice) (string, error) {
	a, err := netip.ParseAddr(s.Endpoints[0].Addresses[0])
	if err != nil {
		return "", err
	}
	at := netip.AddrPortFrom(a, uint16(*s.Ports[0].Port)) //nolint:gosec // a port
	for _, b := range x.backends {
		for _, own := range b.Addrs {
			if own == at {
				return b.Name, nil
			}
		}
	}
	return "", errors.New("no backend at " + at.String())
}

// ask sends one request.
func (s *sight) ask(ctx context.Context) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return false, err
	}
	request.Host = s.host
	response, err := s.client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	echo := &backend.Echo{Headers: http.Header{}}
	_ = json.Unmarshal(body, echo) // a 404 has none
	return s.seen(response, echo), nil
}

func (s *sight) close() { s.client.CloseIdleConnections() }
