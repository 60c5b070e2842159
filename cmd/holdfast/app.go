package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// app is the process's surroundings, so that a test can give its own.
type app struct {
	stdout, stderr io.Writer
	lookupEnv      func(string) (string, bool)
	hostname       func() (string, error)
}

// Exit codes: 1 when the work failed, 2 when the command line or a HOLDFAST_*
// variable is wrong.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is an error of the command line or the environment.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run runs one command line. An error is one line on stderr.
func (a app) run(ctx context.Context, args []string) int {
	root, started := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(a.stderr, "holdfast: "+oneLine(err))
	var usage usageError
	if errors.As(err, &usage) || !*started {
		return exitUsage
	}
	return exitFailed
}

func oneLine(err error) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "\n", "; ")), " ")
}

// root makes the command tree. started turns true when a command's own work
// begins: errors before that are cobra's, about the command line.
func (a app) root() (root *cobra.Command, started *bool) {
	started = new(bool)
	root = &cobra.Command{
		Use:   "holdfast",
		Short: "Ingress control plane for Envoy: presence may be sent eagerly, absence needs proof",
		Long: `holdfast turns HTTPProxy and Ingress objects into Envoy's configuration and
serves it by delta xDS. What it has seen goes out at once; what it has not seen
is held back until it is proven not to be there.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.applyEnv(cmd); err != nil {
				return err
			}
			*started = true
			return nil
		},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.serveCommand(), a.bootstrapCommand(), a.translateCommand(), a.statusCommand(), a.explainCommand(), a.diffCommand(), a.releaseCommand(), a.versionCommand())
	return root, started
}
