package relay

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"testing"
)

// greeter says its name to all who connect, and holds the connection.
func greeter(t *testing.T, name string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.WriteString(c, name+"\n")
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func TestMoveBreaksConnectionsAndLeadsTheNextOnes(t *testing.T) {
	one, two := greeter(t, "one"), greeter(t, "two")
	r, err := Start(one)
	if err != nil {
		t.Fatal(err)
	}
	first := greeted(t, r, "one")
	r.Move(two)
	if _, err := first.ReadByte(); err == nil {
		t.Error("the old connection lives on")
	}
	second := greeted(t, r, "two")
	if err := r.Close(); err != nil { // hangs unless all goroutines end
		t.Error(err)
	}
	if _, err := second.ReadByte(); err == nil {
		t.Error("a connection outlives Close")
	}
}

func greeted(t *testing.T, r *Relay, want string) *bufio.Reader {
	t.Helper()
	c, err := net.Dial("tcp", r.Address().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	b := bufio.NewReader(c)
	if got, err := b.ReadString('\n'); err != nil || got != want+"\n" {
		t.Fatalf("%q, %v: want %s", got, err, want)
	}
	return b
}
