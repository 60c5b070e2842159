package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// envAnnotation marks a flag with the variable that sets it.
const envAnnotation = "holdfast-env"

// bindEnv gives each of the command's flags that has none yet a variable, prefix
// + UPPER_SNAKE, and says so in its help text. The prefix is HOLDFAST_; flags
// that mean something else elsewhere have their command's name in it.
func bindEnv(cmd *cobra.Command, prefix string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if len(f.Annotations[envAnnotation]) > 0 {
			return
		}
		name := prefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		f.Usage += " [$" + name + "]"
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[envAnnotation] = []string{name}
	})
}

// applyEnv sets flags from their variables. A flag that was given wins; an
// empty variable counts as unset.
func (a app) applyEnv(cmd *cobra.Command) error {
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names := f.Annotations[envAnnotation]
		if failed != nil || f.Changed || len(names) == 0 {
			return
		}
		v, ok := a.lookupEnv(names[0])
		if !ok || v == "" {
			return
		}
		if err := f.Value.Set(v); err != nil {
			failed = usagef("%s: invalid value %q: %w", names[0], v, err)
		}
	})
	return failed
}

func (a app) getenv(name string) string {
	v, _ := a.lookupEnv(name)
	return v
}
