package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// outcome of one request.
type outcome struct {
	name   string // the status, or one of the words below
	detail string // verbatim, for a failure
	reused bool
	took   time.Duration
}

// Outcomes other than a status.
const (
	NoConnection = "no connection"
	NoHandshake  = "no TLS handshake"
	Timeout      = "timeout"
	Broken       = "connection broken"
	WrongBackend = "wrong backend"
	WrongHost    = "wrong host"
)

// conn is a client's connection.
type conn struct {
	net.Conn
	r      *bufio.Reader
	target *Target // that it was opened for
}

func closeConn(slot **conn) {
	if *slot != nil {
		_ = (*slot).Close()
		*slot = nil
	}
}

// exchange sends one request on the connection in the slot, opening it if
// there is none, and leaves it there if it can be used again.
func exchange(ctx context.Context, c *Config, t *Target, slot **conn) (o outcome) {
	began := time.Now()
	defer func() { o.took = time.Since(began) }()
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if *slot == nil {
		opened, bad := connect(ctx, c, t)
		if bad != nil {
			return *bad
		}
		*slot = opened
	}
	open := *slot // the slot may be empty by the time the context ends
	deadline, _ := ctx.Deadline()
	_ = open.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = open.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	response, body, err := roundTrip(open, t) //nolint:bodyclose // roundTrip has closed it
	if err != nil {
		closeConn(slot)
		return failure(Broken, err)
	}
	if response.Close {
		closeConn(slot)
	}
	return judge(t, response, body)
}

func connect(ctx context.Context, c *Config, t *Target) (*conn, *outcome) {
	at := c.HTTP
	if t.TLS {
		at = c.HTTPS
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.String())
	if err != nil {
		o := failure(NoConnection, err)
		return nil, &o
	}
	if !t.TLS {
		return &conn{Conn: raw, r: bufio.NewReader(raw), target: t}, nil
	}
	secure := tls.Client(raw, &tls.Config{ServerName: t.name(), RootCAs: c.Roots, NextProtos: []string{"http/1.1"}})
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		o := failure(NoHandshake, err)
		return nil, &o
	}
	return &conn{Conn: secure, r: bufio.NewReader(secure), target: t}, nil
}

func roundTrip(c *conn, t *Target) (*http.Response, []byte, error) {
	u, err := url.ParseRequestURI(t.Path)
	if err != nil {
		return nil, nil, err
	}
	request := &http.Request{Method: http.MethodGet, URL: u, Host: t.Host, Header: http.Header{"User-Agent": {"holdfast-load"}}}
	for k, v := range t.Headers {
		request.Header.Set(k, v)
	}
	if err := request.Write(c); err != nil {
		return nil, nil, fmt.Errorf("write: %w", err)
	}
	response, err := http.ReadResponse(c.r, request)
	if err != nil {
		return nil, nil, fmt.Errorf("read: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return nil, nil, fmt.Errorf("read the body: %w", err)
	}
	return response, body, nil
}

// judge files an answer: a 200 from the wrong server is no success.
func judge(t *Target, r *http.Response, body []byte) outcome {
	o := outcome{name: strconv.Itoa(r.StatusCode)}
	if o.name == t.wanted() && t.Backend != "" {
		switch {
		case r.Header.Get("X-Backend") != t.Backend:
			o.name = WrongBackend
		case r.Header.Get("X-Host") != t.Host:
			o.name = WrongHost
		}
	}
	if o.name != t.wanted() {
		o.detail = verbatim(r, body)
	}
	return o
}

func verbatim(r *http.Response, body []byte) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Proto, r.Status)
	_ = r.Header.Write(&b)
	b.Write(body[:min(len(body), 400)])
	return b.String()
}

func failure(name string, err error) outcome {
	var n net.Error
	if errors.As(err, &n) && n.Timeout() {
		name = Timeout
	}
	return outcome{name: name, detail: err.Error()}
}

func (t *Target) wanted() string {
	if t.Status == 0 {
		return "200"
	}
	return strconv.Itoa(t.Status)
}

// name is the host without its port.
func (t *Target) name() string {
	if h, _, err := net.SplitHostPort(t.Host); err == nil {
		return h
	}
	return t.Host
}
