// Tracedemo shows a change as a trace: it starts holdfast on a folder of a few
// hosts, a real Envoy and a Jaeger, all on free ports of loopback, adds a host and
// edits it, and finds both in Jaeger by the host's name.
//
// On a terminal it goes on until Ctrl-C, with Jaeger's page open to a person.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/holdfast-xds/holdfast/e2e/rig"
	"github.com/holdfast-xds/holdfast/e2e/traced"
)

type config struct {
	holdfast, envoy, jaeger, picture string
	hosts                            int
}

func main() {
	var c config
	flag.StringVar(&c.holdfast, "holdfast", filepath.Join("bin", "holdfast"), "the holdfast `binary`")
	flag.StringVar(&c.envoy, "envoy", filepath.Join(".cache", "bin", "envoy"), "the Envoy `binary`")
	flag.StringVar(&c.jaeger, "jaeger", filepath.Join(".cache", "bin", "jaeger"), "the Jaeger `binary`")
	flag.StringVar(&c.picture, "picture", "", "write the new host's trace to this `file` (SVG), and end")
	flag.IntVar(&c.hosts, "hosts", 50, "how many hosts there are before")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tracedemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, c config) (err error) {
	folder, err := os.MkdirTemp("", "holdfast-tracedemo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	r, err := rig.New(rig.Options{Folder: folder, Holdfast: c.holdfast, Envoy: c.envoy, IP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Seed: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	fmt.Println("starting Jaeger")
	jaeger, err := traced.StartJaeger(ctx, r.Processes, c.jaeger)
	if err != nil {
		return err
	}
	if err := export(jaeger); err != nil {
		return err
	}
	fmt.Printf("starting holdfast with %d hosts, and Envoy\n", c.hosts)
	w, err := traced.Start(ctx, r, c.hosts)
	if err != nil {
		return err
	}
	if err := show(ctx, c, w, jaeger); err != nil || c.picture != "" {
		return err
	}
	if _, err := unix.IoctlGetTermios(int(os.Stdout.Fd()), unix.TCGETS); err == nil {
		fmt.Printf("\nGoes on until Ctrl-C. Edit the files in %s and look at\n  http://%s/search?service=holdfast\n  http://%s/ (holdfast's own page)\n",
			filepath.Join(folder, "objects"), jaeger.Page, w.Holdfast.Config.Admin)
		<-ctx.Done()
	}
	return nil
}

// export has the processes that we start from here on export to Jaeger.
func export(j *traced.Jaeger) error {
	return errors.Join(
		os.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+j.OTLP.String()),
		os.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
		os.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100"), // ms
	)
}

func show(ctx context.Context, c config, w *traced.World, j *traced.Jaeger) error {
	host, err := w.Add(ctx)
	if err != nil {
		return err
	}
	added, err := j.Find(ctx, "holdfast.host", host.FQDN, acknowledged(4))
	if err != nil {
		return err
	}
	if c.picture != "" {
		return os.WriteFile(c.picture, []byte(traced.Picture("A new host, "+host.FQDN, added)), 0o644)
	}
	if err := w.Edit(ctx, host, 12); err != nil {
		return err
	}
	edited, err := j.Find(ctx, "holdfast.host", host.FQDN, func(spans []traced.Span) error {
		if spans[0].Trace == added[0].Trace {
			return errors.New("only the older trace is there")
		}
		return acknowledged(1)(spans)
	})
	if err != nil {
		return err
	}
	fmt.Printf("\nadded host %s: found by holdfast.host=%s\n  %s\n%s", host.FQDN, host.FQDN, j.Address(added[0].Trace), indent(traced.Tree(added)))
	fmt.Printf("\nedited it:\n  %s\n%s", j.Address(edited[0].Trace), indent(traced.Tree(edited)))
	return nil
}

// acknowledged: the trace has at least n ACKs.
func acknowledged(n int) func([]traced.Span) error {
	return func(spans []traced.Span) error {
		if got := strings.Count(traced.Tree(spans), "ack\n"); got < n {
			return fmt.Errorf("%d of %d ACKs", got, n)
		}
		return nil
	}
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}
