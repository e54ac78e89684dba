package app

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/configs"
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
		"reference": a.referenceNames, "show": modelNames, "alias": modelNames, "lineage": modelNames, "verify": modelNames, "push": modelNames,
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
			// The flag is there and asked for once, so there is no error.
			_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return names(), cobra.ShellCompDirectiveDefault
			})
		}
		if cmd.Flags().Lookup("set") != nil {
			// The same.
			_ = cmd.RegisterFlagCompletionFunc("set", a.completeEdit)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// edited names the documents that --set of commands edits, where that is no experiment.
var edited = map[string]string{"train population": "population", "train scml": "scml", "league": "league", "fit": "fit", "live": "live", "serve": "serve"}

// completeEdit completes --set: a key path of the command's document, or KEY.kind=KIND.
func (a *app) completeEdit(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
	_, path, _ := strings.Cut(cmd.CommandPath(), " ")
	return a.keyPaths(cmp.Or(edited[path], "train"), begun, "="), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// keyPaths lists the key paths of a document that begin so, with an end, and the values of kinds.
func (a *app) keyPaths(document, begun, end string) (paths []string) {
	defaults, _, err := documentDefaults(document)
	if err != nil {
		return nil
	}
	add := func(text string) {
		if strings.HasPrefix(text, begun) {
			paths = append(paths, text)
		}
	}
	a.book().Walk(defaults, func(path string, _ []string, explain func() configs.Row) {
		add(path + end)
		if inner := path + ".kind" + end; end != "" && strings.HasPrefix(inner, begun[:min(len(begun), len(inner))]) {
			for _, kind := range explain().Kinds {
				add(inner + kind)
			}
		}
	})
	slices.Sort(paths)
	return slices.Compact(paths)
}

// referenceNames lists what config reference explains.
func (a *app) referenceNames() []string {
	return slices.Concat(a.sections(), []string{"env", "algo", "encoder", "market"}, documentNames(), a.keyPaths("train", "", ""))
}

func kindNames(list []configs.Kind) (names []string) {
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
