// Package envoy runs a real Envoy in a test and asks its admin interface what
// it holds, what it counted and whether it is ready.
package envoy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/proc"
)

// Envoy is a running Envoy.
type Envoy struct {
	*proc.Process
	Admin netip.AddrPort
}

// Config of an Envoy.
type Config struct {
	Binary    string
	Bootstrap []byte         // JSON or YAML
	Admin     netip.AddrPort // as in the bootstrap
	Folder    string         // for the bootstrap
	Name      string         // of process and files; "envoy" when empty
	Args      []string       // more of them
}

// Start starts Envoy; it isn't ready yet.
func Start(g *proc.Group, c Config) (*Envoy, error) {
	if c.Name == "" {
		c.Name = "envoy"
	}
	file := filepath.Join(c.Folder, c.Name+"-bootstrap.json")
	if err := os.WriteFile(file, c.Bootstrap, 0o600); err != nil {
		return nil, err
	}
	args := append([]string{"-c", file, "--concurrency", "1", "--log-level", "warn", "--disable-hot-restart"}, c.Args...)
	p, err := g.Start(c.Name, c.Binary, args...)
	if err != nil {
		return nil, err
	}
	return &Envoy{Process: p, Admin: c.Admin}, nil
}

// Ready gives nil when Envoy says LIVE.
func (e *Envoy) Ready(ctx context.Context) error {
	if err := e.Running(); err != nil {
		return err
	}
	_, err := e.get(ctx, "/ready")
	return err
}

// WaitReady waits until Envoy is ready.
func (e *Envoy) WaitReady(ctx context.Context, limit time.Duration) error {
	return proc.Until(ctx, e.Name+" ready", limit, e.Ready)
}

// Stats gives the counters and gauges whose names match a regular expression.
func (e *Envoy) Stats(ctx context.Context, filter string) (map[string]uint64, error) {
	raw, err := e.get(ctx, "/stats?format=json&type=All&filter="+url.QueryEscape(filter))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Stats []struct {
			Name  string
			Value json.Number
		}
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, fmt.Errorf("envoy stats: %w", err)
	}
	out := map[string]uint64{}
	for _, s := range answer.Stats {
		if n, err := s.Value.Int64(); err == nil && s.Name != "" { // the rest are histograms
			out[s.Name] = uint64(n)
		}
	}
	return out, nil
}

// errNoSuchDump: the config_dump has no part of that name.
var errNoSuchDump = errors.New("not found in config dump")

func (e *Envoy) get(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+e.Admin.String()+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status + ": " + strings.TrimSpace(string(body[:min(len(body), 200)])))
		if response.StatusCode == http.StatusNotFound && strings.Contains(string(body), "not found in config dump") {
			err = errNoSuchDump
		}
	}
	if err != nil {
		return nil, fmt.Errorf("envoy %s: %w", path, err)
	}
	return body, nil
}
