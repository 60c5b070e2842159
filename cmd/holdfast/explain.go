package main

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/holdfast-xds/holdfast/admin"
)

func (a app) explainCommand() *cobra.Command {
	var c adminClient
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Tell where a host, an object or a resource comes from, and which Envoy has what of it",
		Long: `explain asks a running holdfast for everything about one thing:

  holdfast explain vhost/shop.example          a host
  holdfast explain HTTPProxy/shop/cart         a Kubernetes object of any watched kind
  holdfast explain cluster/shop/cart/80        an xDS resource: cluster, endpoints,
                                               listener, route, scope, sds
  holdfast explain shop.example                whatever has that name

It shows the objects behind it with their versions, the derivations that read
them, what each resource rests on, what each Envoy holds, why something is
withheld and since when, what an Envoy says that rejects it, and the last
changes with the ids of their traces.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("explain: give one NAME: cluster/NAME, vhost/HOST or KIND/NAMESPACE/NAME")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.validate(); err != nil {
				return err
			}
			return a.explain(cmd.Context(), c, args[0])
		},
	}
	c.register(cmd)
	return cmd
}

func (a app) explain(ctx context.Context, c adminClient, name string) error {
	var x admin.Explanation
	body, err := c.ask(ctx, "/explain?q="+url.QueryEscape(name), &x)
	if err != nil {
		return err
	}
	if c.output == "json" {
		_, err := a.stdout.Write(body)
		return err
	}
	return writeExplanation(a.stdout, &x)
}
