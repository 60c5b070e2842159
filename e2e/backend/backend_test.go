package backend

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"
	"time"
)

func TestEchoesInBothVersionsOfHTTP(t *testing.T) {
	b, err := Start("one", netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		var p http.Protocols
		p.SetHTTP1(i == 0)
		p.SetUnencryptedHTTP2(i == 1)
		c := http.Client{Transport: &http.Transport{Protocols: &p}, Timeout: 10 * time.Second}
		r, err := c.Get("http://" + b.Addrs()[i].String() + "/x?y=1")
		if err != nil {
			t.Fatal(proto, err)
		}
		var e Echo
		err = json.NewDecoder(r.Body).Decode(&e)
		r.Body.Close()
		if err != nil || e.Backend != "one" || e.Proto != proto || e.Path != "/x?y=1" || r.Header.Get("X-Backend") != "one" {
			t.Errorf("%+v, %v", e, err)
		}
		c.CloseIdleConnections()
	}
	if b.Received() != 2 {
		t.Errorf("received %d", b.Received())
	}
}
