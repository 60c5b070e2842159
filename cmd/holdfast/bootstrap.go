package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// bootstrapConfig is what the flags of bootstrap say.
type bootstrapConfig struct {
	xdsAddress     string
	adminAddress   string
	nodeID         string
	stats          string
	maxConnections uint64
	ca, cert, key  string
}

func (a app) bootstrapCommand() *cobra.Command {
	var c bootstrapConfig
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Print Envoy's bootstrap configuration",
		Long: `bootstrap prints, as JSON, the configuration that Envoy starts with: where
holdfast is, and how to keep Envoy small. Everything else comes by xDS.

  holdfast bootstrap --xds-address holdfast:8001 > envoy.json && envoy -c envoy.json

Certificate files are named, not read: Envoy reads them when it starts.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.bootstrap(c) },
	}
	c.register(cmd.Flags())
	bindEnv(cmd, "HOLDFAST_BOOTSTRAP_")
	return cmd
}

func (c *bootstrapConfig) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&c.xdsAddress, "xds-address", "127.0.0.1:8001", "where Envoy finds holdfast: IP:port or name:port")
	f.StringVar(&c.adminAddress, "admin-address", "127.0.0.1:9901", "address of Envoy's own admin interface, which can do anything to Envoy: IP:port")
	f.StringVar(&c.nodeID, "node-id", "", "how Envoy calls itself; empty: the host name")
	f.StringVar(&c.stats, "stats", statsLean, `"lean": what dashboards and alerts need, a fraction of the memory; "full": everything`)
	f.Uint64Var(&c.maxConnections, "max-connections", 50000, "how many connections Envoy accepts at a time; 0: no limit")
	f.StringVar(&c.ca, "xds-ca", "", "file with the CA of holdfast's certificate (PEM)")
	f.StringVar(&c.cert, "xds-client-cert", "", "file with Envoy's client certificate (PEM)")
	f.StringVar(&c.key, "xds-client-key", "", "file with its private key (PEM)")
}

const (
	statsLean = "lean"
	statsFull = "full"
)

func (a app) bootstrap(c bootstrapConfig) error {
	if c.nodeID == "" {
		name, err := a.hostname()
		if err != nil {
			return fmt.Errorf("--node-id is not given, and the host name is unknown: %w", err)
		}
		c.nodeID = name
	}
	b, err := newEnvoyBootstrap(c)
	if err != nil {
		return err
	}
	out, err := b.json()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s\n", out)
	return err
}

// newEnvoyBootstrap checks the flags.
func newEnvoyBootstrap(c bootstrapConfig) (*envoyBootstrap, error) {
	b := &envoyBootstrap{nodeID: c.nodeID, fullStats: c.stats == statsFull, maxConnections: c.maxConnections}
	var err error
	if b.xds, err = parseAddress(c.xdsAddress); err == nil && b.xds.host == "" {
		err = fmt.Errorf("%q has no host", c.xdsAddress)
	}
	if err != nil {
		return nil, usagef("--xds-address: %w", err)
	}
	if b.admin, err = parseAddress(c.adminAddress); err == nil {
		if _, isIP := b.admin.ip(); !isIP {
			err = fmt.Errorf("%q: Envoy wants an IP address, not a name", c.adminAddress)
		}
	}
	if err != nil {
		return nil, usagef("--admin-address: %w", err)
	}
	if c.stats != statsLean && c.stats != statsFull {
		return nil, usagef(`--stats: %q is neither "lean" nor "full"`, c.stats)
	}
	if b.tls, err = c.clientTLS(); err != nil {
		return nil, err
	}
	return b, nil
}

// clientTLS gives nil when no file is named; it takes all three to be safe.
func (c *bootstrapConfig) clientTLS() (*clientTLS, error) {
	var missing []string
	for _, x := range []struct{ flag, value string }{{"--xds-ca", c.ca}, {"--xds-client-cert", c.cert}, {"--xds-client-key", c.key}} {
		if x.value == "" {
			missing = append(missing, x.flag)
		}
	}
	switch len(missing) {
	case 0:
		return &clientTLS{ca: c.ca, cert: c.cert, key: c.key}, nil
	case 3:
		return nil, nil
	}
	return nil, usagef("--xds-ca, --xds-client-cert and --xds-client-key go together: %s is missing", strings.Join(missing, " and "))
}
