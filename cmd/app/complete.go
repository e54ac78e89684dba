package app

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/configs/reference"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/export/format"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// complete adds what shells complete, beside files: what a command takes and the values of flags,
// by their names. To complete a new one, add it here.
func (a *app) complete(root *cobra.Command) {
	kinds := func(list string) func() []string {
		return func() []string { return kindNames(a.book().Lists[list]) }
	}
	formats := func() (names []string) {
		for _, f := range format.Forms() {
			names = append(names, f.Name)
		}
		return names
	}
	words := func(list ...string) func() []string { return func() []string { return list } }
	arguments := map[string]func() []string{
		"train": shippedNames, "tune": shippedNames, "evolve": shippedNames, "league": shippedNames, "ablate": shippedNames, "walkforward": shippedNames, "check": shippedNames, "prepare": shippedNames, "lookahead": shippedNames, "warmup": shippedNames,
		"evaluate": policyNames, "export": policyNames, "live": policyNames, "publish": runNames,
		"show": modelNames, "alias": modelNames, "lineage": modelNames, "verify": modelNames, "push": modelNames,
	}
	flags := map[string]func() []string{
		"engine": words(append([]string{"auto"}, engineNames()...)...), "log-level": words("debug", "info", "warn", "error"), "log-format": words("text", "json"),
		"split": words(string(envs.Train), string(envs.Valid), string(envs.Test)), "format": formats, "resume": runNames, "init": policyNames, "as": documentNames,
		"env": kinds("env"), "algo": kinds("algo"), "encoder": kinds("encoder"),
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if names := arguments[cmd.Name()]; names != nil && cmd.ValidArgsFunction == nil && cmd.Parent().Name() != "graph" && cmd.Parent().Name() != "grad" {
			cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveDefault
				}
				return names(), cobra.ShellCompDirectiveDefault
			}
		}
		for flag, names := range flags {
			if cmd.Flags().Lookup(flag) == nil && cmd.PersistentFlags().Lookup(flag) == nil {
				continue
			}
			// There is the flag, and it is asked for once: there is no error.
			_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return names(), cobra.ShellCompDirectiveDefault
			})
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

func kindNames(list []reference.Kind) (names []string) {
	for _, k := range list {
		names = append(names, k.Name)
	}
	return names
}

// runNames lists the run directories below this one.
func runNames() (names []string) {
	// The pattern is right, so there is no error.
	found, _ := filepath.Glob(filepath.Join("runs", "*", "config.yaml"))
	for _, f := range found {
		names = append(names, filepath.Dir(f))
	}
	return names
}

// modelNames lists the names in the store that is read where none is named, with their aliases.
func modelNames() (names []string) {
	s, err := artifact.Open(new(storeFlag).path(), artifact.Options{})
	if err != nil {
		return nil
	}
	list, err := s.List()
	if err != nil {
		return nil
	}
	for _, v := range list {
		names = append(names, v.Manifest.Name)
		for _, alias := range v.Aliases {
			if strings.Contains(alias, ":") {
				names = append(names, alias)
			} else {
				names = append(names, v.Manifest.Name+":"+alias)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// policyNames lists runs and models.
func policyNames() []string { return append(runNames(), modelNames()...) }

// shippedNames lists the shipped documents.
func shippedNames() (names []string) {
	found, _ := fs.Glob(configs.Shipped(), "*.yaml")
	for _, f := range found {
		names = append(names, strings.TrimSuffix(f, ".yaml"))
	}
	return names
}
