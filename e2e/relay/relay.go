// Package relay is a TCP switch: what connects to it is passed on to the target
// of the moment, so that an Envoy can be moved from one control plane to another
// as a load balancer does it.
package relay

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
)

// Relay passes connections on. Close waits for its goroutines.
type Relay struct {
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	target netip.AddrPort
	open   map[net.Conn]struct{}
}

// Start listens on a free port of loopback.
func Start(target netip.AddrPort) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{listener: l, target: target, open: map[net.Conn]struct{}{}}
	r.serving.Go(r.accept)
	return r, nil
}

// Address is where it listens.
func (r *Relay) Address() netip.AddrPort { return r.listener.Addr().(*net.TCPAddr).AddrPort() }

// Move breaks all connections; the next ones go to the new target.
func (r *Relay) Move(target netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	for c := range r.open {
		_ = c.Close() // its copies end
	}
}

// Close ends it, and all connections.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.Move(netip.AddrPort{})
	r.serving.Wait()
	return err
}

func (r *Relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // by Close alone
		}
		r.serving.Go(func() { r.pass(c) })
	}
}

func (r *Relay) pass(client net.Conn) {
	defer r.forget(client)
	target := r.keep(client)
	if !target.IsValid() {
		return
	}
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", target.String())
	if err != nil {
		return // the client sees its connection closed
	}
	r.keep(server)
	defer r.forget(server)
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(server, client) // either end may break
		_ = server.Close()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	up.Wait()
}

func (r *Relay) keep(c net.Conn) netip.AddrPort {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[c] = struct{}{}
	return r.target
}

func (r *Relay) forget(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}
