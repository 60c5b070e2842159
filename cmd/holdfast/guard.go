package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/holdfast-xds/holdfast/admin"
	"github.com/holdfast-xds/holdfast/delta"
	"github.com/holdfast-xds/holdfast/delta/ads"
)

// guardFlags are the flags of the removal guard.
type guardFlags struct {
	share string
	hold  time.Duration
}

func (g *guardFlags) register(f *pflag.FlagSet) {
	f.StringVar(&g.share, "removal-guard", "50%", "share of a type that an Envoy may lose within a minute before removals are withheld; 0 turns the guard off")
	f.DurationVar(&g.hold, "removal-guard-hold", 10*time.Minute, "how long the removal guard withholds, unless \"holdfast release\" comes first")
}

func (g *guardFlags) guard() (delta.Guard, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(g.share, "%"), 64)
	switch {
	case err != nil, n < 0, n > 100, n != 0 && !strings.HasSuffix(g.share, "%"):
		return delta.Guard{}, usagef(`--removal-guard: %q is neither 0 nor a percentage such as "50%%"`, g.share)
	case g.hold < 0:
		return delta.Guard{}, usagef("--removal-guard-hold: %s is negative", g.hold)
	}
	return delta.Guard{Share: n / 100, Hold: g.hold}, nil
}

// releaseBy makes the admin listener's release.
func releaseBy(s *ads.Server) func(context.Context, admin.Release) (admin.Released, error) {
	return func(_ context.Context, what admin.Release) (admin.Released, error) {
		n := s.Release(what.Node)
		if n == 0 {
			return admin.Released{Message: "the removal guard withholds nothing"}, nil
		}
		return admin.Released{Count: n, Message: fmt.Sprintf("%d resources are let go, and what follows from that within a minute", n)}, nil
	}
}
