package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if Inside() {
		if err := SetUp(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	}
	code, err := Rerun()
	if errors.Is(err, ErrRefused) {
		fmt.Fprintln(os.Stderr, "skipped:", err)
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func TestBothAddressesWork(t *testing.T) {
	for _, ip := range []netip.Addr{address, netip.MustParseAddr("127.0.0.1")} {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		l.Close()
	}
	all, err := net.Interfaces()
	if err != nil || len(all) != 1 {
		t.Errorf("interfaces %v, %v: want loopback alone", all, err)
	}
}
