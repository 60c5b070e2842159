package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/holdfast-xds/holdfast/benchmarks/suite"
	"github.com/holdfast-xds/holdfast/e2e/kube"
	"github.com/holdfast-xds/holdfast/e2e/netns"
)

// inside runs in a network namespace of its own when a real API server is asked for:
// it refuses endpoints on loopback, and nothing is to leave the machine.
func (c *config) inside(ctx context.Context) error {
	c.backends = netip.MustParseAddr("127.0.0.1")
	if c.draw != "" || c.check || !c.plan().Needs(suite.RealKube) {
		return c.run(ctx)
	}
	if os.Getenv("HOLDFAST_TEST_K8S_BIN") == "" {
		return errors.New("a real API server is asked for: HOLDFAST_TEST_K8S_BIN is to name a folder with kube-apiserver and etcd (make bench-full sets it)")
	}
	if !netns.Inside() {
		code, err := netns.Rerun()
		if err == nil && code != 0 {
			err = errFailed
		}
		return err
	}
	err := netns.SetUp()
	if err != nil {
		return fmt.Errorf("network namespace: %w", err)
	}
	if c.backends, err = kube.Address(); err != nil {
		return err
	}
	return c.run(ctx)
}

// errFailed: the program inside has told why.
var errFailed = errors.New("failed")
