package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -X main.version=….
var version = ""

// build says what this binary is.
type build struct{ version, commit, goVersion string }

func thisBuild() build {
	b := build{version: version, commit: "unknown", goVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b.orUnknown()
	}
	if b.version == "" && info.Main.Version != "(devel)" {
		b.version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.commit = s.Value
		}
	}
	return b.orUnknown()
}

func (b build) orUnknown() build {
	if b.version == "" {
		b.version = "unknown"
	}
	return b
}

func (a app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print holdfast's version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			_, err := fmt.Fprintf(a.stdout, "holdfast %s\ncommit   %s\ngo       %s\n", b.version, b.commit, b.goVersion)
			return err
		},
	}
}
