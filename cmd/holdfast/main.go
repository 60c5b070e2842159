// Command holdfast is an ingress control plane for Envoy whose promise is:
// presence may be sent eagerly, absence needs proof.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	a := app{stdout: os.Stdout, stderr: os.Stderr, lookupEnv: os.LookupEnv, hostname: os.Hostname}
	code := a.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
