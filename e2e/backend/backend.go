// Package backend is an HTTP server that answers with what it saw, so that a
// test can tell which backend a proxy chose and what it made of the request.
//
// Every answer carries X-Backend (the server's name) and X-Host (the Host it was
// asked for), and a body that is an Echo in JSON. A request header X-Echo-Delay
// delays the answer, X-Echo-Status sets its status.
//
// A Backend owns its goroutines: Close waits for them.
package backend

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Echo is what a backend saw of a request.
type Echo struct {
	Backend string      `json:"backend"`
	Host    string      `json:"host"`
	Method  string      `json:"method"`
	Path    string      `json:"path"` // with the query
	Proto   string      `json:"proto"`
	TLS     bool        `json:"tls"`
	SNI     string      `json:"sni,omitempty"`
	Headers http.Header `json:"headers"`
}

// Backend is a running server. It speaks HTTP/1.1 and HTTP/2, in plain text or
// over TLS, on every address.
type Backend struct {
	Name     string
	received atomic.Int64
	servers  []*http.Server
	serving  sync.WaitGroup
	addrs    []netip.AddrPort
}

// Start serves under a name. Port 0 stands for a free port.
func Start(name string, addrs ...netip.AddrPort) (*Backend, error) {
	return start(name, nil, addrs)
}

// StartTLS is Start with a certificate.
func StartTLS(name string, certificate tls.Certificate, addrs ...netip.AddrPort) (*Backend, error) {
	return start(name, &certificate, addrs)
}

func start(name string, certificate *tls.Certificate, addrs []netip.AddrPort) (*Backend, error) {
	b := &Backend{Name: name}
	for _, a := range addrs {
		if err := b.listen(a, certificate); err != nil {
			return nil, errors.Join(fmt.Errorf("backend %s: %w", name, err), b.Close())
		}
	}
	return b, nil
}

// listen adds an address with a server of its own: of two listeners on one
// http.Server only the first takes HTTP/2 in plain text (seen with Go 1.26).
func (b *Backend) listen(at netip.AddrPort, certificate *tls.Certificate) error {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		return err
	}
	b.addrs = append(b.addrs, l.Addr().(*net.TCPAddr).AddrPort())
	quiet := log.New(io.Discard, "", 0) // what clients do wrong, they report themselves
	s := &http.Server{Handler: b, Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	b.servers = append(b.servers, s)
	if certificate != nil {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	}
	b.serving.Go(func() {
		if certificate != nil {
			_ = s.ServeTLS(l, "", "") // ends by Close alone
			return
		}
		_ = s.Serve(l)
	})
	return nil
}

// Addrs gives the addresses that it serves on.
func (b *Backend) Addrs() []netip.AddrPort { return b.addrs }

// Received counts the requests so far.
func (b *Backend) Received() int64 { return b.received.Load() }

// Close stops serving.
func (b *Backend) Close() error {
	var errs []error
	for _, s := range b.servers {
		errs = append(errs, s.Close())
	}
	b.serving.Wait()
	return errors.Join(errs...)
}

// Drain stops serving as a Pod does that ends in order: no new connections, the
// requests that run are answered, then all is closed.
func (b *Backend) Drain(ctx context.Context) error {
	var errs []error
	for _, s := range b.servers {
		errs = append(errs, s.Shutdown(ctx))
	}
	return errors.Join(append(errs, b.Close())...)
}

// ServeHTTP answers with an Echo.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.received.Add(1)
	if d, err := time.ParseDuration(r.Header.Get("X-Echo-Delay")); err == nil && !wait(r.Context(), d) {
		return
	}
	e := Echo{Backend: b.Name, Host: r.Host, Method: r.Method, Path: r.URL.RequestURI(), Proto: r.Proto, TLS: r.TLS != nil, Headers: r.Header}
	if r.TLS != nil {
		e.SNI = r.TLS.ServerName
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Backend", b.Name)
	h.Set("X-Host", r.Host)
	if s, err := strconv.Atoi(r.Header.Get("X-Echo-Status")); err == nil {
		w.WriteHeader(s)
	}
	_ = json.NewEncoder(w).Encode(&e) // the client may have gone
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
