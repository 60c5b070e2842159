// Demo shows what holdfast is for: thousands of hosts served by a real Envoy
// under load, while holdfast is killed and started again.
//
// It makes a folder of HTTPProxies with their Services, EndpointSlices and
// Secrets, starts backends, holdfast and Envoy on free ports of loopback, sends
// requests to random hosts, kills holdfast with SIGKILL a few times, and prints
// what that cost. It fails when a figure that must be 0 is not.
//
// On a terminal it shows its progress and goes on serving at the end, until
// Ctrl-C.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-xds/holdfast/e2e/fixture"
)

type config struct {
	holdfast, envoy string
	hosts, restarts int
	duration        time.Duration
	rate            float64
	keep            bool
}

func main() {
	var c config
	flag.StringVar(&c.holdfast, "holdfast", filepath.Join("bin", "holdfast"), "the holdfast `binary`")
	flag.StringVar(&c.envoy, "envoy", filepath.Join(".cache", "bin", "envoy"), "the Envoy `binary`")
	flag.IntVar(&c.hosts, "hosts", fixture.Default, "how many hosts")
	flag.IntVar(&c.restarts, "restarts", 3, "how often holdfast is killed")
	flag.DurationVar(&c.duration, "duration", 30*time.Second, "how long the load lasts, at least")
	flag.Float64Var(&c.rate, "rate", 500, "requests per second")
	flag.BoolVar(&c.keep, "keep", false, "keep the folder with objects and logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c config) (err error) {
	if c.hosts < 1 || c.restarts < 0 || flag.NArg() > 0 {
		return fmt.Errorf("-hosts must be at least 1, -restarts at least 0, and there are no arguments")
	}
	folder, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if c.keep || err != nil {
			fmt.Fprintln(os.Stderr, "objects and logs are in", folder)
			return
		}
		err = os.RemoveAll(folder)
	}()
	d, err := newDemo(c, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.rig.Close()) }()
	if err := d.play(ctx); err != nil {
		return err
	}
	fmt.Print(d.table())
	if d.screen.live && ctx.Err() == nil {
		d.stay(ctx)
	}
	return d.verdict()
}

// stay keeps serving until a person has seen enough.
func (d *demo) stay(ctx context.Context) {
	fmt.Printf("\nStill serving. Status page: http://%s/  Envoy: http://%s/\nTry: curl -H 'Host: %s' http://%s/\nCtrl-C ends it.\n",
		d.rig.Holdfast.Config.Admin, d.rig.Envoy.Admin, d.plainHost(), d.rig.HTTP)
	<-ctx.Done()
}
