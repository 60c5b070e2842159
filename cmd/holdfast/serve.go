package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// serveConfig is what the flags of serve say.
type serveConfig struct {
	source     string
	kubeconfig string

	xdsAddress   string
	adminAddress string
	adminAccess  adminAccess
	xdsTLS       tlsFiles
	xdsInsecure  bool

	freshEnvoyWait time.Duration
	guard          guardFlags
	rules          rulesFlags

	logFormat string
	logLevel  string
}

func (a app) serveCommand() *cobra.Command {
	var c serveConfig
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve Envoy's configuration, from a cluster or from a folder of YAML",
		Long: `serve watches a Kubernetes cluster (or a folder of YAML) and serves what it
derives by delta xDS. It opens its ports at once and never waits for a kind that
is forbidden or failing: /readyz and "holdfast status" say what is held back.

SIGTERM and SIGINT end it within a second; Envoys keep what they have.

Tracing follows the OTEL_* variables of OpenTelemetry: spans are exported by OTLP
when OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			return a.serve(cmd.Context(), c)
		},
	}
	c.register(cmd.Flags())
	bindEnv(cmd, "HOLDFAST_")
	return cmd
}

func (c *serveConfig) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&c.source, "source", "kube", `where objects come from: "kube" or "dir:PATH"`)
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the service account of the pod")
	f.StringVar(&c.xdsAddress, "xds-address", "127.0.0.1:8001", "address on which Envoys connect")
	f.StringVar(&c.adminAddress, "admin-address", defaultAdminAddress, "address of health, status, the page, metrics and profiles")
	c.adminAccess.register(f)
	c.rules.register(f)
	f.DurationVar(&c.freshEnvoyWait, "fresh-envoy-wait", time.Minute, "how long a new Envoy's listeners wait for a kind that keeps failing, from when it began to fail")
	c.guard.register(f)
	c.xdsTLS.register(f)
	f.BoolVar(&c.xdsInsecure, "xds-insecure", false, "let anyone who reaches a non-loopback --xds-address read everything, private keys too")
	f.StringVar(&c.logFormat, "log-format", "text", `"text" or "json"`)
	f.StringVar(&c.logLevel, "log-level", "info", `"debug", "info", "warn" or "error"`)
}

// validate checks what can be checked without opening anything but a folder.
func (c *serveConfig) validate() error {
	if err := c.validateSource(); err != nil {
		return err
	}
	for _, x := range []struct{ flag, address string }{{"xds-address", c.xdsAddress}, {"admin-address", c.adminAddress}} {
		if _, err := parseAddress(x.address); err != nil {
			return usagef("--%s: %w", x.flag, err)
		}
	}
	if err := c.adminAccess.validate(); err != nil {
		return err
	}
	if c.freshEnvoyWait < 0 {
		return usagef("--fresh-envoy-wait: %s is negative", c.freshEnvoyWait)
	}
	if _, err := c.guard.guard(); err != nil {
		return err
	}
	if _, err := c.logHandler(nil); err != nil {
		return err
	}
	if err := c.xdsTLS.validate(); err != nil {
		return err
	}
	return c.validateExposure()
}

// validateExposure: whoever can open an xDS stream can read the private keys
// of every host.
func (c *serveConfig) validateExposure() error {
	address, err := parseAddress(c.xdsAddress)
	if err != nil || address.loopback() || c.xdsInsecure || c.xdsTLS.mutual() {
		return err
	}
	return usagef("--xds-address %s can be reached from other machines: give --xds-tls-cert, --xds-tls-key and --xds-client-ca, or --xds-insecure", c.xdsAddress)
}

const folderPrefix = "dir:"

// folder gives the folder of a dir: source.
func (c *serveConfig) folder() (string, bool) { return strings.CutPrefix(c.source, folderPrefix) }

func (c *serveConfig) validateSource() error {
	path, isFolder := c.folder()
	switch {
	case c.source == "kube":
		return nil
	case !isFolder || path == "":
		return usagef(`--source: %q is neither "kube" nor "dir:PATH"`, c.source)
	case c.kubeconfig != "":
		return usagef("--kubeconfig has no meaning with --source %s", c.source)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("--source: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("--source: %s is not a folder", path)
	}
	return nil
}

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
