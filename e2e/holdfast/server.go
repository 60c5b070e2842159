// Package holdfast runs the holdfast binary as its users do, by its command
// line, and reads what its admin listener says. It imports nothing of what it
// runs.
package holdfast

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// Config of a holdfast.
type Config struct {
	Binary string
	Name   string   // of the process and its log; "holdfast" when empty
	Source []string // --source and what belongs to it

	XDS, Admin  netip.AddrPort
	HTTP, HTTPS netip.AddrPort // where its Envoys listen
	Args        []string       // more of them
}

// Server is a holdfast that can be ended and started again.
type Server struct {
	*proc.Process // nil until the first start
	Config        Config

	group *proc.Group
}

// Prepare gives a Server that isn't started.
func Prepare(g *proc.Group, c Config) *Server {
	if c.Name == "" {
		c.Name = "holdfast"
	}
	return &Server{Config: c, group: g}
}

// Start starts it; the one before must have ended.
func (s *Server) Start() error {
	c := &s.Config
	args := append([]string{
		"serve", "--xds-address=" + c.XDS.String(), "--admin-address=" + c.Admin.String(),
		"--http-address=" + c.HTTP.String(), "--https-address=" + c.HTTPS.String(),
	}, c.Source...)
	p, err := s.group.Start(c.Name, c.Binary, append(args, c.Args...)...)
	if err == nil {
		s.Process = p
	}
	return err
}

// Bootstrap gives an Envoy's bootstrap.
func (s *Server) Bootstrap(ctx context.Context, node string, admin netip.AddrPort) ([]byte, error) {
	out, err := exec.CommandContext(ctx, s.Config.Binary, "bootstrap", "--xds-address="+s.Config.XDS.String(),
		"--admin-address="+admin.String(), "--node-id="+node).Output()
	if err != nil {
		return nil, fmt.Errorf("holdfast bootstrap: %w", err)
	}
	return out, nil
}

// Status asks the admin listener.
func (s *Server) Status(ctx context.Context) (*Status, error) {
	if err := s.Running(); err != nil {
		return nil, err
	}
	code, body, err := s.get(ctx, "/status")
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("holdfast /status: %d: %.200s", code, body)
	}
	st := &Status{Raw: body}
	if err := json.Unmarshal(body, st); err != nil {
		return nil, fmt.Errorf("holdfast /status: %w", err)
	}
	return st, nil
}

// Ready gives nil when /readyz says 200.
func (s *Server) Ready(ctx context.Context) error {
	if err := s.Running(); err != nil {
		return err
	}
	code, body, err := s.get(ctx, "/readyz")
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("holdfast /readyz: %d: %.400s", code, body)
	}
	return err
}

// Metrics gives /metrics in Prometheus' text form.
func (s *Server) Metrics(ctx context.Context) ([]byte, error) {
	_, body, err := s.get(ctx, "/metrics")
	return body, err
}

// Await waits until a status satisfies the condition, and gives it.
func (s *Server) Await(ctx context.Context, what string, limit time.Duration, condition func(*Status) error) (*Status, error) {
	var last *Status
	err := proc.Until(ctx, what, limit, func(ctx context.Context) error {
		st, err := s.Status(ctx)
		if err != nil {
			return err
		}
		last = st
		return condition(st)
	})
	return last, err
}

func (s *Server) get(ctx context.Context, path string) (code int, body []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Config.Admin.String()+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(response.Body)
	return response.StatusCode, body, err
}
