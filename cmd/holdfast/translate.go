package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/k8swatch"
	"github.com/holdfast-xds/holdfast/translate"
)

// translateConfig is what the flags of translate say.
type translateConfig struct {
	paths       []string
	rules       rulesFlags
	output      string
	types       []string
	name        string
	allowErrors bool
}

func (a app) translateCommand() *cobra.Command {
	var c translateConfig
	cmd := &cobra.Command{
		Use:   "translate PATH...",
		Short: "Translate YAML files into Envoy's resources, without a cluster or an Envoy",
		Long: `translate reads files, or folders of files, of Kubernetes objects and prints
the xDS resources that holdfast would serve if the cluster held these objects
and no others: each with the objects that it was made from, and with the kinds
on whose absence it relies. Private keys are not shown.

Problems of the objects go to stderr. If one of them is an error, the exit code
is 1 even so everything else was translated.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("translate: no PATH is given")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c.paths = args
			return a.translate(c)
		},
	}
	f := cmd.Flags()
	c.rules.register(f)
	bindEnv(cmd, "HOLDFAST_")
	f.StringVarP(&c.output, "output", "o", "yaml", `"yaml" or "json"`)
	f.StringSliceVar(&c.types, "type", nil, `only resources of this type, for example "Cluster" or a type URL; may be repeated`)
	f.StringVar(&c.name, "name", "", "only resources of this name; * stands for anything")
	f.BoolVar(&c.allowErrors, "allow-errors", false, "exit code 0 even if objects have errors")
	bindEnv(cmd, "HOLDFAST_TRANSLATE_")
	return cmd
}

func (a app) translate(c translateConfig) error {
	if c.output != "yaml" && c.output != "json" {
		return usagef(`--output: %q is neither "yaml" nor "json"`, c.output)
	}
	rules, err := c.rules.rules()
	if err != nil {
		return err
	}
	types, err := selectTypes(rules.Types(), c.types)
	if err != nil {
		return err
	}
	snap, err := offline(rules, c.paths)
	if err != nil {
		return err
	}
	resources, err := viewResources(snap, types, nameMatcher(c.name))
	if err != nil {
		return err
	}
	if err := writeResourceViews(a.stdout, c.output, resources); err != nil {
		return err
	}
	return a.reportProblems(snap.Problems(), c.allowErrors)
}

// offline makes the snapshot of a cluster that holds what the files say.
func offline(rules *translate.Rules, paths []string) (*index.Snapshot, error) {
	ix, err := index.New(rules)
	if err != nil {
		return nil, err
	}
	changes, err := k8swatch.Read(paths...)
	if err != nil {
		return nil, err
	}
	ix.Apply(index.Cause{}, changes...)
	return ix.Snapshot(), nil
}

func (a app) reportProblems(problems []index.Problem, allowErrors bool) error {
	failed := 0
	for _, p := range problems {
		if p.Severity == index.Error {
			failed++
		}
		fmt.Fprintln(a.stderr, problemLine(p))
	}
	if failed == 0 || allowErrors {
		return nil
	}
	return fmt.Errorf("%d of %d problems are errors; everything else was translated", failed, len(problems))
}

func problemLine(p index.Problem) string {
	parts := []string{string(p.Severity), p.Object.String()}
	if p.Field != "" {
		parts = append(parts, p.Field)
	}
	return strings.Join(append(parts, p.Message), ": ")
}

// selectTypes gives the types that are asked for, by URL or last part; all when
// none is.
func selectTypes(all []index.TypeSpec, wanted []string) ([]string, error) {
	var out, known []string
	for _, t := range all {
		known = append(known, lastPart(t.URL))
	}
	for _, t := range all {
		if len(wanted) == 0 {
			out = append(out, t.URL)
		}
	}
	for _, w := range wanted {
		found := false
		for _, t := range all {
			if strings.EqualFold(w, t.URL) || strings.EqualFold(w, lastPart(t.URL)) {
				out, found = append(out, t.URL), true
			}
		}
		if !found {
			return nil, usagef("--type: %q is none of %s", w, strings.Join(known, ", "))
		}
	}
	return out, nil
}

func nameMatcher(pattern string) func(string) bool {
	if pattern == "" {
		return func(string) bool { return true }
	}
	re := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
	return re.MatchString
}
