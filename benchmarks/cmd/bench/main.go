// Command bench runs holdfast's benchmarks: see the README beside benchmarks.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-xds/holdfast/benchmarks/peer"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		if !errors.Is(err, errFailed) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

// run runs a peer, when it is started as one, or the benchmarks.
func run(ctx context.Context, args []string) error {
	if len(args) > 1 && args[0] == "peer" {
		return peer.Run(args[1], os.Stdin, os.Stdout, args[2:])
	}
	c, err := parse(args)
	if err != nil {
		return err
	}
	return c.inside(ctx)
}
