package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const defaultAdminAddress = "127.0.0.1:6060"

// clientTimeout bounds one request.
const clientTimeout = 20 * time.Second

// adminClient is what the commands that ask a running holdfast have in common.
type adminClient struct {
	address, output string
}

// register adds the flags. The variable of --output has the command's name in it.
func (c *adminClient) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.address, "admin-address", defaultAdminAddress, "the running holdfast's --admin-address")
	bindEnv(cmd, "HOLDFAST_")
	cmd.Flags().StringVarP(&c.output, "output", "o", "text", `"text" or "json"`)
	bindEnv(cmd, "HOLDFAST_"+strings.ToUpper(cmd.Name())+"_")
}

func (c *adminClient) validate() error {
	if c.output != "text" && c.output != "json" {
		return usagef(`--output: %q is neither "text" nor "json"`, c.output)
	}
	if _, err := parseAddress(c.address); err != nil {
		return usagef("--admin-address: %w", err)
	}
	return nil
}

// ask gives the body of an answer, which also fills v.
func (c *adminClient) ask(ctx context.Context, path string, v any) ([]byte, error) {
	body, err := fetch(ctx, "holdfast's --admin-address", "http://"+c.address+path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("http://%s%s does not look like holdfast's: is it --admin-address? %w", c.address, path, err)
	}
	return body, nil
}

// fetch gets a URL of the given listener. Its errors say what to do next.
func fetch(ctx context.Context, what, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, unreachable(err, what, req.URL.Host)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	if resp.StatusCode == http.StatusOK {
		return body, nil
	}
	answer := strings.TrimSpace(string(body))
	// holdfast says in a line what is wrong; another server says who knows what.
	plain := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") && !strings.Contains(answer, "\n") && answer != "404 page not found"
	if plain && resp.StatusCode < http.StatusInternalServerError {
		return nil, errors.New(answer)
	}
	return nil, fmt.Errorf("%s answered %s: is it %s, and of this version?", url, resp.Status, what)
}

func unreachable(err error, what, host string) error {
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nothing listens on %s: does it run, and is this %s? In a cluster: kubectl port-forward the pod's admin port first", host, what)
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("%s does not answer within %s: is it stopped, or is this another program's address? It should be %s", host, clientTimeout, what)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// lastPart gives a type URL's last part: "Cluster".
func lastPart(url string) string { return url[strings.LastIndexAny(url, "./")+1:] }
