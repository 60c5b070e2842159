package main

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
)

// address is a checked host:port.
type address struct {
	host string // may be empty: every interface
	port uint16
}

func parseAddress(s string) (address, error) {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return address{}, fmt.Errorf("%q is not host:port", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return address{}, fmt.Errorf("%q: %q is not a port number", s, port)
	}
	return address{host: host, port: uint16(n)}, nil
}

// ip gives the host as an IP address, if it is one.
func (a address) ip() (netip.Addr, bool) {
	ip, err := netip.ParseAddr(a.host)
	return ip, err == nil
}

// loopback reports whether only this machine can reach the address.
func (a address) loopback() bool {
	if a.host == "localhost" {
		return true
	}
	ip, ok := a.ip()
	return ok && ip.IsLoopback()
}
