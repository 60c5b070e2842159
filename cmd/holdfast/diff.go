package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/holdfast-xds/holdfast/admin"
)

// diffConfig is what the flags of diff say.
type diffConfig struct {
	adminClient
	envoyAdmin string
}

func (a app) diffCommand() *cobra.Command {
	var c diffConfig
	cmd := &cobra.Command{
		Use:   "diff --envoy-admin HOST:PORT",
		Short: "Compare what an Envoy says that it has with what holdfast knows that it holds",
		Long: `diff asks an Envoy's admin interface for the names and versions of all that it
got by xDS (its config_dump, names only), and a running holdfast for what that
Envoy holds by its ACKs. Which of the connected Envoys it is, its node id says.

The exit code is 1 when they differ. What is on its way at this moment is not
counted as a difference, nor what is gone and the Envoy keeps while connections
drain.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			return a.diff(cmd.Context(), c)
		},
	}
	c.register(cmd)
	cmd.Flags().StringVar(&c.envoyAdmin, "envoy-admin", "", "the Envoy's admin address, for example 127.0.0.1:9901")
	bindEnv(cmd, "HOLDFAST_DIFF_")
	return cmd
}

func (c *diffConfig) validate() error {
	if c.envoyAdmin == "" {
		return usagef("--envoy-admin: give the address of the Envoy's admin interface, for example 127.0.0.1:9901")
	}
	if _, err := parseAddress(c.envoyAdmin); err != nil {
		return usagef("--envoy-admin: %w", err)
	}
	return c.adminClient.validate()
}

func (a app) diff(ctx context.Context, c diffConfig) error {
	e := envoyAdmin{c.envoyAdmin}
	node, err := e.node(ctx)
	if err != nil {
		return err
	}
	// Envoy first: what is acknowledged between the two questions is then missing
	// on a side that a second look will show to be the same.
	has, err := e.inventory(ctx)
	if err != nil {
		return err
	}
	var h admin.Holdings
	if _, err := c.ask(ctx, "/holdings?node="+url.QueryEscape(node), &h); err != nil {
		return err
	}
	d := compareHoldings(&h, has)
	if err := a.writeDiff(c.output, d); err != nil {
		return err
	}
	if n := d.count(); n > 0 {
		return fmt.Errorf("%d differences between Envoy %s and what holdfast knows of it; if they stay when you ask again, holdfast explain TYPE/NAME tells more", n, node)
	}
	return nil
}

func (a app) writeDiff(output string, d *difference) error {
	if output == "json" {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(d)
	}
	return writeDiffText(a.stdout, d)
}
