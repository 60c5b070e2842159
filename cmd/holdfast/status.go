package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-xds/holdfast/admin"
)

const defaultAdminAddress = "127.0.0.1:6060"

// statusTimeout bounds the whole request.
const statusTimeout = 10 * time.Second

func (a app) statusCommand() *cobra.Command {
	var adminAddress, output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a running holdfast knows, what each Envoy holds, and what is withheld",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return usagef(`--output: %q is neither "text" nor "json"`, output)
			}
			return a.status(cmd.Context(), adminAddress, output)
		},
	}
	cmd.Flags().StringVar(&adminAddress, "admin-address", defaultAdminAddress, "the running holdfast's --admin-address")
	bindEnv(cmd, "HOLDFAST_")
	cmd.Flags().StringVarP(&output, "output", "o", "text", `"text" or "json"`)
	bindEnv(cmd, "HOLDFAST_STATUS_")
	return cmd
}

func (a app) status(ctx context.Context, address, output string) error {
	if _, err := parseAddress(address); err != nil {
		return usagef("--admin-address: %w", err)
	}
	body, err := fetch(ctx, "http://"+address+"/status")
	if err != nil {
		return err
	}
	if output == "json" {
		_, err := a.stdout.Write(body)
		return err
	}
	var st admin.Status
	if err := json.Unmarshal(body, &st); err != nil {
		return fmt.Errorf("http://%s/status does not look like holdfast's: %w", address, err)
	}
	return writeStatus(a.stdout, st)
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing listens on %s: is holdfast running, and is this its --admin-address? In a cluster: kubectl port-forward the pod's admin port first", req.URL.Host)
	}
	if err != nil {
		return nil, fmt.Errorf("holdfast's admin listener: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s: is it holdfast's --admin-address?", url, resp.Status)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return body, nil
}

// lastPart gives a type URL's last part: "Cluster".
func lastPart(url string) string { return url[strings.LastIndexAny(url, "./")+1:] }
