package scenario

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/holdfast-xds/holdfast/e2e/backend"
)

// answer is what came back of one request.
type answer struct {
	status  int
	headers http.Header
	body    string
	echo    *backend.Echo // nil when no backend answered
	names   []string      // in the served certificate
	refused error         // no answer at all
}

// once sends a step's requests and checks the answers.
func (r *Runner) once(ctx context.Context, s *Step) error {
	received := map[string]int64{}
	for name, b := range r.Backends {
		received[name] = b.Received()
	}
	counts := map[string]int{}
	times := max(1, s.Times)
	for range times {
		a, err := r.send(ctx, s)
		if err != nil {
			return err
		}
		if err := s.Want.check(a); err != nil {
			return err
		}
		if a.echo != nil {
			counts[a.echo.Backend]++
		}
	}
	for name, share := range s.Want.Share {
		if got := float64(counts[name]) / float64(times); math.Abs(got-share) > 0.15 {
			return fmt.Errorf("%.2f of the answers came from %s, want %.2f", got, name, share)
		}
	}
	if m := s.Want.Mirrored; m != "" && r.Backends[m].Received() == received[m] {
		return fmt.Errorf("%s received no copy", m)
	}
	return nil
}

// send sends one request on a connection of its own.
func (r *Runner) send(ctx context.Context, s *Step) (*answer, error) {
	u, err := url.Parse(s.Get)
	if err != nil {
		return nil, err
	}
	method := s.Method
	if method == "" {
		method = http.MethodGet
	}
	request, err := http.NewRequestWithContext(ctx, method, s.Get, nil)
	if err != nil {
		return nil, err
	}
	for k, v := range s.Headers {
		request.Header.Set(k, v)
		if k == "Host" {
			request.Host = v
		}
	}
	a := &answer{}
	t := r.transport(s, u, a)
	defer t.CloseIdleConnections()
	response, err := t.RoundTrip(request)
	if err != nil {
		a.refused = err
		return a, ctx.Err()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	a.status, a.headers, a.body = response.StatusCode, response.Header, string(body)
	var e backend.Echo
	if json.Unmarshal(body, &e) == nil && e.Backend != "" {
		a.echo = &e
	}
	return a, nil
}

// transport connects to the listener that the URL's scheme means, and follows
// nothing.
func (r *Runner) transport(s *Step, u *url.URL, a *answer) *http.Transport {
	at := r.HTTP
	if u.Scheme == "https" {
		at = r.HTTPS
	}
	sni := u.Hostname()
	if s.SNI != nil {
		sni = *s.SNI
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.Generator.CA())
	c := &tls.Config{
		ServerName: sni, NextProtos: []string{"http/1.1"},
		InsecureSkipVerify: true, // checked below, against no name
		VerifyConnection: func(c tls.ConnectionState) error {
			a.names = c.PeerCertificates[0].DNSNames
			_, err := c.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots})
			return err
		},
	}
	if s.HTTP2 {
		c.NextProtos = []string{"h2"}
	}
	switch s.TLS {
	case "1.2":
		c.MaxVersion = tls.VersionTLS12
	case "1.3":
		c.MinVersion = tls.VersionTLS13
	}
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", at.String())
		},
		// Left to itself, the transport would send an SNI where none is wanted. (An
		// address, which the dialer puts in its place, is never sent.)
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", at.String())
		},
		Protocols: new(http.Protocols), DisableCompression: true,
	}
	t.Protocols.SetHTTP1(!s.HTTP2)
	t.Protocols.SetHTTP2(s.HTTP2)
	t.Protocols.SetUnencryptedHTTP2(s.HTTP2)
	return t
}

func (w *Want) check(a *answer) error {
	if w.Refused {
		if a.refused == nil {
			return fmt.Errorf("answered %d, want no answer", a.status)
		}
		return nil
	}
	if a.refused != nil {
		return fmt.Errorf("no answer: %w", a.refused)
	}
	if w.Status != 0 && a.status != w.Status {
		return fmt.Errorf("status %d, want %d: %.200s", a.status, w.Status, a.body)
	}
	if w.Backend != "" && (a.echo == nil || a.echo.Backend != w.Backend) {
		return fmt.Errorf("backend %+v, want %s", a.echo, w.Backend)
	}
	if w.Body != nil && a.body != *w.Body {
		return fmt.Errorf("body %q, want %q", a.body, *w.Body)
	}
	if w.Certificate != "" && !slices.Contains(a.names, w.Certificate) {
		return fmt.Errorf("certificate for %v, want %s", a.names, w.Certificate)
	}
	if err := checkHeaders(w.Headers, a.headers); err != nil {
		return err
	}
	return w.Seen.check(a.echo)
}

func (s *Seen) check(e *backend.Echo) error {
	switch {
	case s == nil:
		return nil
	case e == nil:
		return fmt.Errorf("no backend answered")
	case s.TLS != nil && *s.TLS != e.TLS:
		return fmt.Errorf("backend saw TLS %v, want %v", e.TLS, *s.TLS)
	}
	for _, f := range []struct{ what, want, got string }{
		{"path", s.Path, e.Path}, {"host", s.Host, e.Host}, {"protocol", s.Proto, e.Proto}, {"SNI", s.SNI, e.SNI},
	} {
		if f.want != "" && f.want != f.got {
			return fmt.Errorf("backend saw %s %q, want %q", f.what, f.got, f.want)
		}
	}
	if err := checkHeaders(s.Headers, e.Headers); err != nil {
		return fmt.Errorf("backend saw %w", err)
	}
	return nil
}

func checkHeaders(want map[string]*string, got http.Header) error {
	for k, v := range want {
		values := got.Values(k)
		switch {
		case v == nil && len(values) > 0:
			return fmt.Errorf("header %s %q, want none", k, values)
		case v != nil && (len(values) != 1 || values[0] != *v):
			return fmt.Errorf("header %s %q, want %q", k, values, *v)
		}
	}
	return nil
}
