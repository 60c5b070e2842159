package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/holdfast-xds/holdfast/admin"
)

func (a app) statusCommand() *cobra.Command {
	var c adminClient
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what a running holdfast knows, what each Envoy holds, and what is withheld",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			return a.status(cmd.Context(), c)
		},
	}
	c.register(cmd)
	return cmd
}

func (a app) status(ctx context.Context, c adminClient) error {
	var st admin.Status
	body, err := c.ask(ctx, "/status", &st)
	if err != nil {
		return err
	}
	if c.output == "json" {
		_, err := a.stdout.Write(body)
		return err
	}
	return writeStatus(a.stdout, st)
}
